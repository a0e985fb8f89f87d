//! What a device says of itself, where its application is the one that is told.

use std::time::Duration;

use wakeful_link::supervisor::Foreground;

use super::ClientSession;
use crate::{error::ClientError, view::host::Network};

#[uniffi::export]
impl ClientSession {
    /// What the device says of its network. Such reports are often wrong: connections that stand
    /// are looked at, not cut.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn set_network(&self, network: Network) -> Result<(), ClientError> {
        self.live()?.client.with(|link, now| link.handle_network(now, network.into()));
        Ok(())
    }

    /// There is a network as before, but the way into it is another one, such as from Wi-Fi to a
    /// mobile network, or through a tunnel.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn path_changed(&self) -> Result<(), ClientError> {
        self.live()?.client.with(wakeful_link::Link::handle_path_changed);
        Ok(())
    }

    /// The application came to the foreground. `suspended_ms` is for how long the system had
    /// stopped it, by a clock that goes on while the device sleeps; absent: it ran all the time,
    /// such as a window behind others. After half a minute what was under way counts as lost and
    /// connections are looked at with less patience.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    #[uniffi::method(default(suspended_ms = None))]
    pub fn foreground(&self, suspended_ms: Option<u64>) -> Result<(), ClientError> {
        let foreground = suspended_ms.map_or(Foreground::Desk, |suspended| {
            Foreground::after(Duration::from_millis(suspended))
        });
        self.live()?.client.with(|link, now| link.handle_foreground(now, foreground));
        Ok(())
    }
}
