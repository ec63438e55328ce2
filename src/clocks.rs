//! The clocks of both sides, compared with that of this machine: a wrong one makes credentials and certificates end early,
//! or not be valid yet.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use kube_lite::Cluster;
use kube_lite::logging::log_line;
use tokio::time::{Instant, sleep};

use crate::side::Side;

/// How long nobody looks. What is compared comes with answers to other requests.
const LOOK: Duration = Duration::from_secs(10);
/// By how many seconds clocks differ that are wrong: far more than an answer takes, and less than servers tolerate.
pub const DIFFER: u64 = 30;
/// By how many they differ at most that are right again, so that there is no line each time the difference changes by a second.
const AGREE: u64 = DIFFER / 2;

/// How the clock of a side and that of this machine differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// By too much.
    pub differs: bool,
    /// By how many seconds that of the side is ahead, as it was last said: it is said again once that has become another
    /// magnitude.
    pub ahead: i64,
}

impl Difference {
    /// It is so many seconds ahead now. True if that is news.
    pub fn is(&mut self, ahead: i64) -> bool {
        let most = if self.differs { AGREE } else { DIFFER };
        let differs = ahead.unsigned_abs() > most;
        let is_news = differs != self.differs;
        if is_news || differs && ahead.abs_diff(self.ahead) > self.ahead.unsigned_abs() / 2 {
            self.ahead = ahead;
        }
        self.differs = differs;
        is_news
    }
}

/// Logs which clocks differ from that of this machine, each once as long as it does. `clock` gives the time since 1970.
pub async fn watch(sides: [Rc<Cluster>; 2], clock: fn() -> Duration) -> Infallible {
    let mut differences = [Difference::default(); 2];
    loop {
        for (cluster, difference) in sides.iter().zip(&mut differences) {
            let ahead = cluster.standing().figures.clock_ahead(Instant::now(), clock());
            if let Some(ahead) = ahead.filter(|ahead| difference.is(*ahead)) {
                tell(Side::of(cluster), difference.differs, ahead);
            }
        }
        sleep(LOOK).await;
    }
}

fn tell(side: Side, differs: bool, ahead: i64) {
    if differs {
        log_line!(
            Warn,
            ClockDiffers,
            "the clock of a side and that of this machine differ",
            side = side,
            ahead = ahead,
            advice = "set the one that is wrong: by a wrong clock, credentials and certificates end early or are not valid yet"
        );
    } else {
        log_line!(
            Info,
            ClockAgrees,
            "the clock of a side and that of this machine do not differ any more",
            side = side,
            ahead = ahead
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_differs_has_a_line_and_another_one_when_it_is_right() {
        let mut difference = Difference::default();
        let lines = [0, 30, -30, 31, 3000, 30, 16, 15, 30, -31, 0].map(|ahead| (ahead, difference.is(ahead)));
        let news: Vec<i64> = lines
            .into_iter()
            .filter(|(_, is)| *is)
            .map(|(ahead, _)| ahead)
            .collect();
        assert_eq!(news, [31, 15, -31, 0]);
    }

    #[test]
    fn what_is_said_of_a_difference_changes_with_its_magnitude() {
        let mut difference = Difference::default();
        let said = [0, 3, 40, 41, 60, 61, 100, -100, -90, 10].map(|ahead| {
            difference.is(ahead);
            difference.ahead
        });
        assert_eq!(said, [0, 0, 40, 40, 40, 61, 100, -100, -100, 10]);
    }
}
