//! A prompt that is handed to a paired host itself.

use std::time::Duration;

use anyhow::Context as _;
use wakeful_wire::rpc::{Call, Taken};

use super::super::hosts::{Tries, call_until_known};
use crate::connect::Reached;

/// How long a host that cannot be reached is tried.
const PATIENCE: Duration = Duration::from_secs(20);

/// Makes a call. It is made again, with its ids, where it is not known whether it arrived; the host
/// takes it once.
pub(super) async fn call(reached: &Reached, call: &Call) -> anyhow::Result<Taken> {
    let taken = call_until_known(reached, call, Tries::All(PATIENCE)).await?;
    serde_json::from_value(taken).context("the host's answer cannot be read")
}
