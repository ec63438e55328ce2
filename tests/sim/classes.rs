//! The classes of faults, and how each one strikes a run.

use std::time::Duration;

use edge_syncer::side::Side;
use tokio::time::{Instant, advance, sleep};

use super::fight::fight;
use super::run::Run;
use super::store::Store;
use super::weather::{Moment, Spell, Trouble};
use super::world::Habits;

/// Defines the classes, and the list of all of them.
macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident,)*) => {
        /// A class of faults. A run has one, several, or none.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Class {
            $($(#[$doc])* $class,)*
        }

        /// Every class.
        pub const ALL: &[Class] = &[$(Class::$class,)*];
    };
}

classes! {
    /// Nothing goes wrong; people work.
    Calm,
    /// Requests that never arrive.
    LostRequest,
    /// Requests that take effect and are not answered.
    LostReply,
    /// Lists, answers and watches that are cut.
    Cut,
    /// Answers that end early as if they were complete.
    Truncated,
    /// 410: versions and continuations that are too old.
    Expired,
    /// Watches that tell late.
    Late,
    /// Reads that show what was some seconds ago, which no correct server does.
    Stale,
    /// Watches without bookmarks.
    NoBookmarks,
    /// 429 and 503.
    Busy,
    /// 401.
    Unauthorized,
    /// 403 on a type or on everything.
    Forbidden,
    /// 404 on a type or on everything.
    NotServed,
    /// Lists that are empty though they succeed.
    EmptyList,
    /// Pages of something else.
    Html,
    /// Group versions that do not say what they serve.
    PartialDiscovery,
    /// CRDs that go and come back.
    Definitions,
    /// Types that are not served for a while, whose objects stay: a bound API that is taken away and given back.
    Hidden,
    /// Namespaces that are deleted at the edge.
    Terminating,
    /// Objects that the edge refuses for ever.
    Poison,
    /// Objects deleted and created again under the same name, and edited on both sides.
    Contention,
    /// Configs that change.
    Selection,
    /// The syncer is killed and started again.
    Crash,
    /// The machine is suspended for a year.
    ClockJump,
    /// A link that is there for half a minute and gone for half a minute.
    Flapping,
    /// A side that is away for hours.
    Offline,
    /// Two syncers at once.
    TwoSyncers,
    /// The edge is restored from a backup.
    EdgeRestored,
    /// The hub is restored from a backup.
    HubRestored,
    /// Another hub answers at the same address for a while.
    OtherHub,
    /// Most of what there is at the hub, or at the edge, is deleted at once.
    MassDelete,
    /// Others act on the very objects that the syncer is about, between any two of its requests.
    Between,
    /// A controller that changes a copy back each time, and says so in its status.
    Fight,
}

impl Class {
    /// The class of that name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|class| format!("{class:?}") == name)
    }

    /// True for what only people can judge: deletes are held until they do. Such a class does not come with those that
    /// take from the syncer what it knows of before, or that lie where an accident is to be known from a lie.
    /// If objects go up, the edge's own restore is one too.
    pub fn is_accident(self, upsync: bool) -> bool {
        matches!(
            self,
            Self::HubRestored | Self::OtherHub | Self::MassDelete | Self::Stale
        ) || self == Self::EdgeRestored && upsync
    }

    /// True if people have to confirm what it does before deletes go on.
    pub fn needs_people(self, upsync: bool) -> bool {
        self.is_accident(upsync) && self != Self::MassDelete
    }

    /// True if the class may come with an accident.
    pub fn combines_with_accident(self) -> bool {
        !self.is_accident(true)
            && !matches!(
                self,
                Self::Crash
                    | Self::TwoSyncers
                    | Self::ClockJump
                    | Self::EmptyList
                    | Self::Definitions
                    | Self::Hidden
                    | Self::Between
                    | Self::Fight
            )
    }

    /// What people are like in runs of these classes.
    pub fn habits(classes: &[Self], upsync: bool) -> Habits {
        let any = |class: Self| classes.contains(&class);
        Habits {
            poison: any(Self::Poison),
            namespaces: any(Self::Terminating) || any(Self::Calm) || any(Self::Crash),
            configs: any(Self::Selection),
            edge: any(Self::Contention) || any(Self::Calm) || any(Self::LostReply),
            create_only: any(Self::Contention) || any(Self::Selection),
            recreate: any(Self::Contention) || any(Self::Late),
            many: any(Self::MassDelete),
            upsync,
        }
    }

    /// Strikes once.
    pub async fn strike(self, run: &mut Run) {
        match self {
            Self::Calm | Self::Poison | Self::Contention | Self::Selection => {}
            Self::LostRequest => run.spell(&Trouble::LostRequest),
            Self::LostReply => run.spell(&Trouble::LostReply),
            Self::Cut => run.spell(&Trouble::Cut),
            Self::Truncated => run.spell(&Trouble::Truncated),
            Self::Expired => expire(run),
            Self::Late => run.spell(&Trouble::Late),
            Self::Stale => run.spell(&Trouble::Stale),
            Self::NoBookmarks => run.spell(&Trouble::NoBookmarks),
            Self::Busy => run.spell(&Trouble::Busy),
            Self::Unauthorized => run.spell(&Trouble::Unauthorized),
            Self::Forbidden => {
                let ty = any_type(run);
                run.spell(&Trouble::Forbidden(ty));
            }
            Self::NotServed => {
                let ty = any_type(run);
                run.spell(&Trouble::NotServed(ty));
            }
            Self::EmptyList => run.spell(&Trouble::EmptyList),
            Self::Html => run.spell(&Trouble::Html),
            Self::PartialDiscovery => run.spell(&Trouble::PartialDiscovery),
            Self::Definitions => definitions(run).await,
            Self::Hidden => hide(run).await,
            Self::Terminating => run.world.edge_deletes_namespace(),
            Self::Crash => crash(run).await,
            Self::ClockJump => suspend(run).await,
            Self::Flapping => flap(run).await,
            Self::Offline => offline(run).await,
            Self::TwoSyncers => run.start_another(),
            Self::EdgeRestored => restore(run, Side::Edge).await,
            Self::HubRestored => restore(run, Side::Hub).await,
            Self::OtherHub => another_hub(run).await,
            Self::MassDelete => mass_delete(run),
            Self::Between => interrupt(run),
            Self::Fight => fight(run).await,
        }
    }
}

fn any_type(run: &mut Run) -> String {
    let types = [
        "",
        "configmaps",
        "namespaces",
        "deployments.apps",
        "gauges.example.org",
        "panels.example.org",
        "reports.field.example.org",
        "syncerconfigs.edge.kubestellar.io",
        "customresourcedefinitions.apiextensions.k8s.io",
    ];
    types[run.dice.usize(0..types.len())].to_owned()
}

fn expire(run: &mut Run) {
    for side in [Side::Hub, Side::Edge] {
        run.server(side).store.borrow_mut().compact();
    }
    run.spell(&Trouble::Expired);
}

async fn definitions(run: &mut Run) {
    let side = run.any_side();
    let index = run.world.undefine(side);
    run.note(&format!("CRD {index} deleted at the {side}"));
    let pause = run.dice.u64(1..90);
    run.work_for(Duration::from_secs(pause)).await;
    run.world.define(side, index);
}

async fn hide(run: &mut Run) {
    let side = run.any_side();
    let ty = run.world.any_custom_type();
    run.note(&format!("{ty} is not served at the {side}"));
    run.server(side).hide(ty);
    let pause = run.dice.u64(1..200);
    run.work_for(Duration::from_secs(pause)).await;
    run.note(&format!("{ty} is served again at the {side}"));
    run.server(side).show_all();
}

async fn crash(run: &mut Run) {
    if run.dice.bool() {
        let moment = if run.dice.bool() { Moment::Before } else { Moment::After };
        run.trap.armed.set(Some((run.dice.u32(0..30), moment)));
        return;
    }
    run.kill().await;
    let pause = run.dice.u64(0..60);
    run.work_for(Duration::from_secs(pause)).await;
    run.start();
}

/// The machine sleeps for a year and finds its timers overdue. What others did meanwhile was done before.
async fn suspend(run: &mut Run) {
    let year = Duration::from_secs(365 * 86_400);
    run.note("a year goes by");
    run.ledger.borrow_mut().suspended += year;
    advance(year).await;
}

async fn flap(run: &mut Run) {
    let side = run.any_side();
    let silent = run.dice.bool();
    let start = Instant::now();
    let before = run.requests(side);
    let flaps = run.dice.u32(5..20);
    for _ in 0..flaps {
        run.down(side, silent, Duration::from_secs(30));
        run.work_for(Duration::from_secs(60)).await;
    }
    run.check_rate(side, before, start.elapsed());
}

async fn offline(run: &mut Run) {
    let side = run.any_side();
    let silent = run.dice.bool();
    let hours = run.dice.u64(1..4);
    away(run, side, silent, Duration::from_secs(hours * 3600)).await;
}

/// A side is away for so long, and people go on.
pub async fn away(run: &mut Run, side: Side, silent: bool, time: Duration) {
    let before = run.requests(side);
    run.down(side, silent, time);
    let parts = 10;
    for _ in 0..parts {
        run.world.act();
        sleep(time / parts).await;
    }
    run.check_rate(side, before, time);
}

/// Between a backup and the restore of it others write far more than what is written here after it, so that no version
/// of before comes again while anybody waits for it.
const OTHERS: u64 = 10_000;

async fn restore(run: &mut Run, side: Side) {
    let backup = run.server(side).store.borrow().clone();
    run.note(&format!("a backup is taken at the {side}"));
    run.server(side).store.borrow_mut().skip(OTHERS);
    let pause = run.dice.u64(20..200);
    run.work_for(Duration::from_secs(pause)).await;
    let uids = format!("{side}-{}", run.dice.u32(..));
    let why = match side {
        Side::Hub => "the hub was restored from a backup",
        Side::Edge => "the edge was restored from a backup",
    };
    run.server(side).become_another(backup.with_uids(&uids), why);
}

async fn another_hub(run: &mut Run) {
    let own = run.server(Side::Hub).store.borrow().clone();
    let other = Store::another(run.dice.u64(10..5000));
    run.server(Side::Hub).become_another(other, "another hub answers");
    let pause = run.dice.u64(20..400);
    sleep(Duration::from_secs(pause)).await;
    run.server(Side::Hub).become_another(own, "");
}

/// Others are busy with the same objects as the syncer for a while.
fn interrupt(run: &mut Run) {
    let seconds = run.dice.u64(5..60);
    let chance = run.dice.f64() * 0.2;
    for side in [Side::Hub, Side::Edge] {
        run.strike_by_chance(side, Trouble::Interrupted, Duration::from_secs(seconds), chance);
    }
}

/// Somebody deletes most of what there is at a side, by mistake or not.
fn mass_delete(run: &mut Run) {
    let at = if run.world.habits.upsync {
        run.any_side()
    } else {
        Side::Hub
    };
    run.note(&format!("many objects are deleted at the {at}"));
    run.expect_mass(at);
    run.world.delete_many(at);
}

/// A spell of `trouble` that begins now.
pub fn spell(trouble: Trouble, time: Duration, chance: f64) -> Spell {
    let from = Instant::now();
    Spell {
        trouble,
        from,
        until: from + time,
        chance,
    }
}
