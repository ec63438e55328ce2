//! The driver, with two roles: `tally.rs` is a whole one, with all that it needs; `greeter.rs` is what one decides that
//! opens and closes sides, and `work.rs` its border. `server.rs` is the servers in memory.

#![allow(unreachable_pub, missing_docs, reason = "a test binary has no outside")]

#[path = "driver/greeter.rs"]
mod greeter;
#[path = "driver/server.rs"]
mod server;
#[path = "driver/tally.rs"]
mod tally;
#[path = "driver/work.rs"]
mod work;

use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use driver::serve::HealthQuery;
use driver::source::Mode;
use driver::{Opened, Shell, Sides};
use greeter::Greeter;
use kube_lite::{Error, ObjectName};
use server::Server;
use tally::Tally;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::sleep;
use work::{EVERY, Side, Work};

/// Time in which all that is due at once is done. The clock is paused: it costs none.
const MOMENT: Duration = Duration::from_millis(100);

/// A desk, two shelves, and the role between them.
struct Bench {
    desk: Rc<Server>,
    shelves: BTreeMap<&'static str, Rc<Server>>,
    questions: Sender<HealthQuery>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<Greeter, Error>>,
}

impl Bench {
    fn start() -> Self {
        let desk = Rc::<Server>::default();
        let shelves = BTreeMap::from(["a", "b"].map(|name| (name, Rc::<Server>::default())));
        let opened = Opened {
            server: Rc::new(desk.cluster("desk")),
            mode: Mode::Watch,
        };
        let sides = Sides::new([(Side::Desk, opened)]);
        let of_shelves = shelves.clone();
        let work = Work(Rc::new(move |name: &ObjectName| {
            of_shelves[&*name.name].cluster(&name.name)
        }));
        let (questions, asked) = channel(1);
        let (stop, stopped) = oneshot::channel::<()>();
        let shell = Shell::new(Greeter::new(&sides.moment()), work, sides);
        let running = spawn_local(shell.run(asked, async { stopped.await.unwrap_or_default() }));
        Self {
            desk,
            shelves,
            questions,
            stop,
            running,
        }
    }

    fn shelf(&self, name: &str) -> &Server {
        &self.shelves[name]
    }

    /// How many greetings have begun at both shelves.
    fn written(&self) -> [usize; 2] {
        ["a", "b"].map(|name| self.shelf(name).written.get())
    }

    async fn stopped(self) -> Greeter {
        self.stop.send(()).expect("it runs");
        self.running.await.expect("it ends").expect("it has no fault")
    }
}

async fn local(test: impl Future<Output = ()>) {
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn a_side_is_served_from_when_it_is_opened_until_it_is_closed() {
    local(async {
        let bench = Bench::start();
        bench.desk.create("a");
        sleep(MOMENT).await;
        assert_eq!(bench.written(), [1, 0]);
        sleep(EVERY).await;
        bench.desk.create("b");
        sleep(MOMENT).await;
        assert_eq!(bench.written(), [2, 1]);
        bench.desk.delete("a");
        sleep(EVERY).await;
        assert_eq!(bench.written(), [2, 2], "that side is closed");
        bench.desk.create("a");
        sleep(MOMENT).await;
        assert_eq!(bench.written(), [3, 2]);
        assert_eq!(bench.stopped().await.greeted, 5);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_to_a_side_that_is_closed_ends_and_has_no_answer() {
    local(async {
        let bench = Bench::start();
        bench.shelf("a").is_silent.set(true);
        bench.desk.create("a");
        bench.desk.create("b");
        sleep(MOMENT).await;
        assert_eq!((bench.written(), bench.shelf("a").given_up.get()), ([1, 1], 0));
        bench.desk.delete("a");
        sleep(MOMENT).await;
        assert_eq!(bench.shelf("a").given_up.get(), 1);
        assert_eq!(bench.stopped().await.greeted, 1, "the other one goes on");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_role_that_begins_again_has_the_sides_of_the_start_and_nothing_in_flight() {
    local(async {
        let bench = Bench::start();
        bench.shelf("a").is_silent.set(true);
        bench.desk.create("a");
        sleep(MOMENT).await;
        bench.desk.create("b");
        sleep(MOMENT).await;
        assert_eq!((bench.written(), bench.shelf("a").given_up.get()), ([1, 1], 0));
        bench.desk.expire();
        sleep(EVERY / 4).await;
        assert_eq!(bench.shelf("a").given_up.get(), 1);
        assert_eq!(bench.written(), [2, 2], "all is read and opened from the beginning");
        assert_eq!(bench.stopped().await.greeted, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_and_a_fault_of_the_role_ends_the_loop() {
    local(async {
        let bench = Bench::start();
        let (answer, answered) = oneshot::channel();
        let asked = bench.questions.send(HealthQuery::Alive(answer)).await;
        asked.expect("it runs");
        answered.await.expect("it is alive");
        bench.shelf("a").forbids.set(true);
        bench.desk.create("a");
        let ended = bench.running.await.expect("it ends");
        assert!(ended.is_err_and(|error| error.is_forbidden()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_role_of_one_file_reports_at_one_side_what_it_counts_at_another() {
    local(async {
        let servers = [(); 2].map(|()| Rc::<Server>::default());
        let [counted, reported] = &servers;
        let open = |server: &Rc<Server>, name| Opened {
            server: Rc::new(server.cluster(name)),
            mode: Mode::Watch,
        };
        let counted_side = (tally::Side::Counted, open(counted, "counted"));
        let sides = Sides::new([counted_side, (tally::Side::Reported, open(reported, "reported"))]);
        let shell = Shell::new(Tally::new(&sides.moment()), tally::Work, sides);
        let (_questions, asked) = channel(1);
        let running = spawn_local(shell.run(asked, std::future::pending()));
        let last = || String::from_utf8_lossy(&reported.last.borrow()).into_owned();
        sleep(MOMENT).await;
        assert!(last().contains(r#""changes":"0""#), "{}", last());
        counted.create("a");
        counted.create("b");
        counted.delete("a");
        sleep(EVERY).await;
        assert!(last().contains(r#""changes":"3""#), "{}", last());
        reported.forbids.set(true);
        sleep(EVERY).await;
        let refused = reported.written.get();
        reported.forbids.set(false);
        sleep(EVERY).await;
        assert!(reported.written.get() > refused, "it is tried again");
        running.abort();
    })
    .await;
}
