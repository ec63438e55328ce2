//! What goes wrong on one side, and when: a seeded plan of spells of trouble.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::others::Others;
use super::refusal::Refusal;
use super::request::{Ask, Verb};
use super::types;

/// How old what is read may be.
pub const STALE: Duration = Duration::from_secs(10);

/// One kind of trouble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing answers; open watches break, or fall silent if `silent`.
    Down {
        /// Packets vanish instead of being refused.
        silent: bool,
    },
    /// Requests are lost before they arrive.
    LostRequest,
    /// Requests take effect and their answers are lost.
    LostReply,
    /// Bodies and watches are cut.
    Cut,
    /// Bodies end early as if they were complete.
    Truncated,
    /// Something else answers with a page.
    Html,
    /// 429 and 503 with `Retry-After`.
    Busy,
    /// 401 for everything.
    Unauthorized,
    /// 403 for one type (or for everything, if empty).
    Forbidden(String),
    /// 404 for one type (or for everything, if empty: the workspace is gone).
    NotServed(String),
    /// One type is being set up: 429 for it, as kcp answers.
    SettingUp(&'static str),
    /// The server that stands behind one type is away: 503 of the server before it for requests about that type.
    Unavailable(&'static str),
    /// Writes of one type are never answered, though the side answers all else: a webhook hangs.
    Hangs(&'static str),
    /// An admission policy refuses writes of objects whose names begin so.
    Denied(&'static str),
    /// What stands before the server answers with a page for one type: 502, 503 or 504.
    Gateway(&'static str),
    /// Requests of that verb are answered with a page.
    PageFor(Verb),
    /// Requests of that verb are refused with 503.
    RefusedFor(Verb),
    /// Something else answers requests of that verb with a bare 404.
    NotFoundFor(Verb),
    /// The same as the next, for one type alone.
    EmptyListOf(&'static str),
    /// Lists are empty though they answer with success. No correct server does that.
    EmptyList,
    /// Group versions other than the core one answer 503 when asked what they serve.
    PartialDiscovery,
    /// Watches tell what happened much later.
    Late,
    /// Objects and lists are read as they were some seconds ago.
    Stale,
    /// Watches send no bookmarks.
    NoBookmarks,
    /// Versions to resume from and list continuations are too old.
    Expired,
    /// Others act on the very objects that requests are about, just before them and just after.
    Interrupted,
}

/// Trouble for a time.
#[derive(Clone, Debug)]
pub struct Spell {
    /// What.
    pub trouble: Trouble,
    /// From when.
    pub from: Instant,
    /// Until when.
    pub until: Instant,
    /// How likely each request is to meet it.
    pub chance: f64,
}

/// How a server answers a request for a streaming list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    /// It streams.
    Works,
    /// It answers 400.
    Refused,
    /// It answers 200 and then an ERROR event.
    Fails,
    /// It ignores the wish and sends a watch.
    Ignored,
}

/// When, relative to what a request does, the syncer is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The request did not reach the server.
    Before,
    /// It took effect and was not answered.
    After,
}

/// Kills the syncer at a request.
#[derive(Default)]
pub struct Trap {
    /// Requests until then, and the moment within that request.
    pub armed: Cell<Option<(u32, Moment)>>,
    /// Tells that it is so.
    pub sprung: Notify,
}

impl Trap {
    /// Counts a request. The moment of this one, if it is the one.
    pub fn count(&self) -> Option<Moment> {
        let (left, moment) = self.armed.get()?;
        if left > 0 {
            self.armed.set(Some((left - 1, moment)));
            return None;
        }
        self.armed.set(None);
        Some(moment)
    }
}

/// What becomes of a request that does not reach the server.
pub enum Early {
    /// The connection breaks.
    Reset,
    /// Nothing ever comes back.
    Silence,
    /// An error answer.
    Refused(Refusal),
    /// A page with status 200.
    Page,
}

/// What becomes of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Late {
    /// It arrives.
    Arrives,
    /// The connection breaks before it.
    Reset,
    /// Nothing ever comes back.
    Silence,
    /// The server says that it timed out.
    TimedOut,
    /// The body is cut at this share of its length.
    Cut(f64),
    /// The body ends at this share of its length.
    Truncated(f64),
}

/// What the API server's authorizer says.
fn forbidden(ask: &Ask) -> String {
    let (of, target) = (ask.target.qualified(), &ask.target);
    let verb = match ask.verb {
        Verb::Discover | Verb::Get | Verb::Unknown => "get",
        Verb::List => "list",
        Verb::Watch | Verb::Stream => "watch",
        Verb::Apply | Verb::MergePatch | Verb::JsonPatch => "patch",
        Verb::Create => "create",
        Verb::Replace => "update",
        Verb::Delete => "delete",
    };
    let object = if target.name.is_empty() {
        String::new()
    } else {
        format!(" {:?}", target.name)
    };
    let place = match &*target.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    format!(
        "{of}{object} is forbidden: User \"syncer\" cannot {verb} resource {:?} in API group {:?} {place}",
        target.resource, target.group
    )
}

/// The plan of one side.
pub struct Weather {
    /// Chance of this side.
    pub dice: Rng,
    /// All spells.
    pub spells: Vec<Spell>,
    /// How streaming lists are answered.
    pub streaming: Streaming,
    /// Most objects a page.
    pub page: usize,
    /// Kills the syncer.
    pub trap: Rc<Trap>,
    /// Acts between requests.
    pub others: Rc<Others>,
}

impl Weather {
    /// Nothing goes wrong, and nothing is left to chance.
    pub fn fine() -> Self {
        Self {
            dice: Rng::with_seed(0),
            spells: Vec::new(),
            streaming: Streaming::Works,
            page: usize::MAX,
            trap: Rc::default(),
            others: Rc::default(),
        }
    }

    /// The kind of trouble that `which` picks, if this request meets it.
    fn meets(&mut self, which: impl Fn(&Trouble) -> bool) -> Option<Trouble> {
        let now = Instant::now();
        let dice = &mut self.dice;
        let met = self
            .spells
            .iter()
            .find(|spell| spell.from <= now && now < spell.until && which(&spell.trouble) && dice.f64() < spell.chance);
        met.map(|spell| spell.trouble.clone())
    }

    fn is(&mut self, trouble: &Trouble) -> bool {
        self.meets(|met| met == trouble).is_some()
    }

    /// If nothing answers now: whether in silence.
    pub fn down(&self) -> Option<bool> {
        let now = Instant::now();
        self.spells.iter().find_map(|spell| match spell.trouble {
            Trouble::Down { silent } if spell.from <= now && now < spell.until => Some(silent),
            _ => None,
        })
    }

    /// True while any spell lasts.
    pub fn is_bad(&self) -> bool {
        let now = Instant::now();
        self.spells.iter().any(|spell| spell.from <= now && now < spell.until)
    }

    /// Ends everything.
    pub fn clear(&mut self) {
        self.spells.clear();
    }

    /// What befalls a request on its way.
    pub fn before(&mut self, ask: &Ask) -> Option<Early> {
        if let Some(silent) = self.down() {
            return Some(if silent { Early::Silence } else { Early::Reset });
        }
        if self.is(&Trouble::LostRequest) {
            return Some(if self.dice.bool() { Early::Reset } else { Early::Silence });
        }
        if self.is(&Trouble::Html) {
            return Some(match self.dice.u8(0..3) {
                0 => Early::Refused(Refusal::plain(404, "<html>no such page</html>")),
                1 => Early::Refused(Refusal::plain(502, "<html>bad gateway</html>")),
                _ => Early::Page,
            });
        }
        if self.is(&Trouble::Unauthorized) {
            return Some(Early::Refused(Refusal::unauthorized()));
        }
        if self.is(&Trouble::Busy) {
            let code = if self.dice.bool() { 429 } else { 503 };
            return Some(Early::Refused(Refusal::busy(code, self.dice.u64(1..20))));
        }
        if self.is(&Trouble::PageFor(ask.verb)) {
            return Some(Early::Page);
        }
        if self.is(&Trouble::RefusedFor(ask.verb)) {
            return Some(Early::Refused(Refusal::busy(503, 1)));
        }
        if self.is(&Trouble::NotFoundFor(ask.verb)) {
            return Some(Early::Refused(Refusal::no_path()));
        }
        let of = ask.target.qualified();
        if self
            .meets(|trouble| matches!(trouble, Trouble::Unavailable(ty) if *ty == of))
            .is_some()
        {
            return Some(Early::Refused(Refusal::plain(503, "service unavailable\n")));
        }
        let name = &ask.target.name;
        if ask.verb.writes()
            && self
                .meets(|trouble| matches!(trouble, Trouble::Denied(prefix) if name.starts_with(prefix)))
                .is_some()
        {
            return Some(Early::Refused(Refusal::denied(&of, name)));
        }
        if ask.verb.writes()
            && self
                .meets(|trouble| matches!(trouble, Trouble::Hangs(ty) if *ty == of))
                .is_some()
        {
            return Some(Early::Silence);
        }
        if self
            .meets(|trouble| matches!(trouble, Trouble::Gateway(ty) if *ty == of))
            .is_some()
        {
            let code = self.dice.u16(502..505);
            return Some(Early::Refused(Refusal::plain(
                code,
                "<html>no server is available</html>",
            )));
        }
        if let Some(refusal) = self.about_type(ask) {
            return Some(Early::Refused(refusal));
        }
        let sets_up = self.meets(|trouble| matches!(trouble, Trouble::SettingUp(ty) if *ty == of));
        sets_up.map(|_| Early::Refused(Refusal::busy(429, 1)))
    }

    fn about_type(&mut self, ask: &Ask) -> Option<Refusal> {
        let of = ask.target.qualified();
        let named = |ty: &String| ty.is_empty() || (*ty == of && ask.verb != Verb::Discover);
        match self.meets(|trouble| matches!(trouble, Trouble::Forbidden(ty) | Trouble::NotServed(ty) if named(ty)))? {
            Trouble::Forbidden(_) => {
                let message = forbidden(ask);
                let details = serde_json::json!({"kind": ask.target.resource, "group": ask.target.group});
                Some(Refusal::new(403, "Forbidden", &message, &details))
            }
            Trouble::NotServed(ty) if !ty.is_empty() && types::is_built_in_group(&ask.target.group) => {
                Some(Refusal::no_type())
            }
            _ => Some(Refusal::no_path()),
        }
    }

    /// What befalls an answer on its way.
    pub fn after(&mut self, ask: &Ask) -> Late {
        if self.is(&Trouble::LostReply) {
            return match self.dice.u8(0..3) {
                0 => Late::Reset,
                1 => Late::Silence,
                _ => Late::TimedOut,
            };
        }
        if ask.verb.watches() {
            return Late::Arrives;
        }
        let share = self.dice.f64();
        if self.is(&Trouble::Cut) {
            return Late::Cut(share);
        }
        if self.is(&Trouble::Truncated) {
            return Late::Truncated(share);
        }
        Late::Arrives
    }

    /// True if a list of that type answers with nothing.
    pub fn empties(&mut self, resource: &str) -> bool {
        self.is(&Trouble::EmptyList)
            || self
                .meets(|trouble| matches!(trouble, Trouble::EmptyListOf(of) if *of == resource))
                .is_some()
    }

    /// True if a version to go on from is said to be too old.
    pub fn expires(&mut self) -> bool {
        self.is(&Trouble::Expired)
    }

    /// What a reading request that comes now is shown, if it is not what there is: as of how long ago.
    pub fn staleness(&mut self) -> Option<Duration> {
        self.is(&Trouble::Stale).then(|| STALE.mul_f64(self.dice.f64()))
    }

    /// True if a group version does not say what it serves.
    pub fn hides_discovery(&mut self) -> bool {
        self.is(&Trouble::PartialDiscovery)
    }

    /// True if another client acts now.
    pub fn is_interrupted(&mut self) -> bool {
        self.is(&Trouble::Interrupted)
    }

    /// True if a watch that opens now is to be without bookmarks.
    pub fn without_bookmarks(&mut self) -> bool {
        self.is(&Trouble::NoBookmarks)
    }

    /// True if a watch that opens now is to be cut.
    pub fn cuts(&mut self) -> bool {
        self.is(&Trouble::Cut)
    }

    /// True if watches are slow to tell now.
    pub fn is_late(&self) -> bool {
        let now = Instant::now();
        self.spells
            .iter()
            .any(|spell| spell.trouble == Trouble::Late && spell.from <= now && now < spell.until)
    }
}
