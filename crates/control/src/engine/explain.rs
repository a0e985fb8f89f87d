//! Why an environment is awake, and when it will sleep.

use std::time::Duration;

use wakeful_lifecycle::port::Loaded;
use wakeful_wire::{
    ClockKind, EnvId, Phase,
    api::{AwakeBecause, Explain},
    gate::LeaseKind,
    time::millis,
};

use super::{Engine, EngineError};

impl Engine {
    /// Why an environment is awake, and when it will sleep.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], or a failing store.
    pub async fn explain(&self, env: EnvId) -> Result<Explain, EngineError> {
        let loaded = self.load(env).await?;
        Ok(self.explanation(&loaded))
    }

    fn explanation(&self, loaded: &Loaded) -> Explain {
        let now = self.now();
        let phase = loaded.record.phase();
        let awake = matches!(phase, Phase::Ready | Phase::Starting);
        let mut because = Vec::new();
        let mut sleeps_in_ms = None;
        if awake {
            for kind in [ClockKind::Agent, ClockKind::App] {
                let left = millis(loaded.clocks.runs_for(kind, self.policy(), now));
                if left > 0 {
                    let surface = kind.as_str().to_owned();
                    because.push(AwakeBecause::Clock { surface, expires_in_ms: left });
                }
            }
            let extended = loaded.clocks.extended_until.filter(|until| *until > now);
            if let Some(until) = extended {
                let expires_in_ms = millis(now.until(until));
                because.push(AwakeBecause::Clock { surface: "extended".into(), expires_in_ms });
            }
            because.extend(loaded.clocks.held(now).map(|lease| AwakeBecause::Lease {
                surface: lease.surface.clone(),
                what: lease.kind,
                count: lease.count,
                since: lease.since,
            }));
            let held = loaded.clocks.held(now).next().is_some();
            let idle_at = loaded.clocks.idle_at(self.policy(), now);
            sleeps_in_ms = (!held).then(|| millis(now.until(idle_at)));
        }
        let sentence = sentence(phase, &because, sleeps_in_ms);
        Explain { phase, awake_because: because, sleeps_in_ms, sentence }
    }
}

fn sentence(phase: Phase, because: &[AwakeBecause], sleeps_in_ms: Option<u64>) -> String {
    match phase {
        Phase::Suspended => "Asleep. A visit wakes it.".into(),
        Phase::Frozen => "Paused in memory. A visit wakes it.".into(),
        Phase::Suspending => "Going to sleep. A visit wakes it.".into(),
        Phase::Failed => "It could not be started.".into(),
        Phase::Disabled => "Switched off.".into(),
        Phase::Publishing => "A publish is under way.".into(),
        Phase::Deleted => "Deleted.".into(),
        Phase::Ready | Phase::Starting => awake_sentence(because, sleeps_in_ms),
    }
}

fn awake_sentence(because: &[AwakeBecause], sleeps_in_ms: Option<u64>) -> String {
    let open: Vec<String> = because
        .iter()
        .filter_map(|reason| match reason {
            AwakeBecause::Lease { surface, what, count, .. } => {
                let plural = if *count == 1 { "" } else { "s" };
                if *what == LeaseKind::Turn {
                    return Some(format!("{count} running turn{plural} of an agent"));
                }
                Some(format!("{count} open {}{plural} on {surface}", what.as_str()))
            }
            AwakeBecause::Clock { .. } => None,
        })
        .collect();
    if !open.is_empty() {
        return format!(
            "Awake because of {}. It sleeps some time after the last ends.",
            open.join(", ")
        );
    }
    match sleeps_in_ms {
        Some(left) => {
            format!("Sleeps in {} unless somebody comes.", short(Duration::from_millis(left)))
        }
        None => "Awake.".into(),
    }
}

/// A duration for people: `29 min`, `45 s`.
fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeful_wire::{SurfaceName, Timestamp};

    #[test]
    fn the_sentence_names_what_is_open_before_when_it_sleeps() {
        let lease = AwakeBecause::Lease {
            surface: SurfaceName::app(),
            what: LeaseKind::Socket,
            count: 2,
            since: Timestamp(0),
        };
        let text = sentence(Phase::Ready, &[lease], None);
        assert!(text.contains("2 open sockets on app"), "{text}");
        let lease = AwakeBecause::Lease {
            surface: SurfaceName::host(),
            what: LeaseKind::Turn,
            count: 1,
            since: Timestamp(0),
        };
        let text = sentence(Phase::Ready, &[lease], None);
        assert!(text.contains("1 running turn of an agent"), "{text}");
        let text = sentence(Phase::Ready, &[], Some(29 * 60_000));
        assert_eq!(text, "Sleeps in 29 min unless somebody comes.");
    }
}
