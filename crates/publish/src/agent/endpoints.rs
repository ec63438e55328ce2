//! From where the URLs of the export come: from its endpoint slice, or from the export itself where that was named and no
//! slice of its name is there.
//!
//! Promises: an object that is gone has no URLs, whichever way that is heard; as long as nothing was heard, nothing follows.

use std::collections::BTreeSet;
use std::rc::Rc;

use driver::source::SourceEvent;
use kube_lite::Error;

use crate::kcp::{EndpointSlice, Export, parsed};

type Urls = BTreeSet<Rc<str>>;

/// What was heard of an object.
#[derive(Debug, Default)]
enum Heard {
    /// Nothing yet.
    #[default]
    Nothing,
    /// It is not there.
    Absent,
    /// It is there, with these URLs.
    Has(Urls),
}

/// One object that is read by its name.
#[derive(Debug, Default)]
struct Named {
    heard: Heard,
    /// The list that is being read has named it.
    is_listed: bool,
}

impl Named {
    fn hears(&mut self, event: &SourceEvent, urls_of: impl Fn(&[u8]) -> Option<Urls>) {
        match event {
            SourceEvent::Begin(_) => self.is_listed = false,
            SourceEvent::Object(object) => {
                self.is_listed = true;
                if let Some(urls) = urls_of(object.bytes()) {
                    self.heard = Heard::Has(urls);
                }
            }
            SourceEvent::Unchanged(_) | SourceEvent::Unreadable(_) => self.is_listed = true,
            SourceEvent::Gone(_) => self.heard = Heard::Absent,
            SourceEvent::Complete(_) if !self.is_listed => self.heard = Heard::Absent,
            SourceEvent::Complete(_) | SourceEvent::Up | SourceEvent::Down(_) => {}
        }
    }
}

/// See the module's doc.
#[derive(Debug)]
pub(super) struct Endpoints {
    /// The export was named, and not the slice.
    may_lack_slice: bool,
    slice: Named,
    export: Named,
}

impl Endpoints {
    /// Those of a slice; or of an export, which has one or not.
    pub(super) fn new(may_lack_slice: bool) -> Self {
        Self {
            may_lack_slice,
            slice: Named::default(),
            export: Named::default(),
        }
    }

    /// Something was heard of the slice.
    pub(super) fn of_slice(&mut self, event: &SourceEvent) {
        if let (SourceEvent::Down(error), Heard::Nothing) = (event, &self.slice.heard)
            && self.is_no_slice(error)
        {
            self.slice.heard = Heard::Absent;
        }
        self.slice.hears(event, |object| {
            let slice = parsed::<EndpointSlice>(object).ok()?;
            Some(slice.urls().map(Rc::from).collect())
        });
    }

    /// Something was heard of the export.
    pub(super) fn of_export(&mut self, event: &SourceEvent) {
        self.export.hears(event, |object| {
            let export = parsed::<Export>(object).ok()?;
            Some(export.urls().map(Rc::from).collect())
        });
    }

    /// True if an error about the slice says that this kcp has none, or none for us, and nobody has named one.
    pub(super) fn is_no_slice(&self, error: &Error) -> bool {
        self.may_lack_slice && is_absent(error)
    }

    /// The URLs, once they are known.
    pub(super) fn urls(&self) -> Option<Urls> {
        let of = match self.slice.heard {
            Heard::Absent if self.may_lack_slice => &self.export,
            _ => &self.slice,
        };
        match &of.heard {
            Heard::Nothing => None,
            Heard::Absent => Some(Urls::new()),
            Heard::Has(urls) => Some(urls.clone()),
        }
    }
}

/// A server's answer that it has no slice, or does not show it.
pub(crate) fn is_absent(error: &Error) -> bool {
    error.status().is_some_and(|status| matches!(status.code, 403 | 404))
}

#[cfg(test)]
mod tests {
    use driver::source::{Covers, Versions};
    use kube_lite::ApiStatus;
    use serde_json::json;

    use super::*;

    const COMPLETE: SourceEvent = SourceEvent::Complete(Versions {
        list: 1,
        before: 0,
        side: 0,
        has_lost: false,
    });

    fn begin() -> SourceEvent {
        SourceEvent::Begin(Covers::Everything)
    }

    fn read(object: &serde_json::Value) -> Box<kube_lite::Object> {
        Box::new(kube_lite::Object::take_apart(object.to_string().into()).expect("it is an object"))
    }

    fn slice(url: &str) -> SourceEvent {
        let slice = json!({"metadata": {"name": "e"}, "status": {"endpoints": [{"url": url}]}});
        SourceEvent::Object(read(&slice))
    }

    fn export(url: &str) -> SourceEvent {
        let export = json!({"metadata": {"name": "e"}, "status": {"virtualWorkspaces": [{"url": url}]}});
        SourceEvent::Object(read(&export))
    }

    fn down(code: u16) -> SourceEvent {
        let status = ApiStatus {
            code,
            ..ApiStatus::default()
        };
        SourceEvent::Down(Error::Status(Box::new(status)))
    }

    fn shown(endpoints: &Endpoints) -> Option<String> {
        let urls: Vec<Rc<str>> = endpoints.urls()?.into_iter().collect();
        Some(urls.join(","))
    }

    #[test]
    fn a_slice_that_is_gone_has_no_urls_whichever_way_that_is_heard() {
        let gone = SourceEvent::Gone(read(&json!({"metadata": {"name": "a"}})));
        for ends in [vec![gone], vec![begin(), COMPLETE]] {
            let mut endpoints = Endpoints::new(false);
            assert_eq!(shown(&endpoints), None);
            let same = SourceEvent::Unchanged(read(&json!({"metadata": {"name": "a"}})));
            for event in [
                begin(),
                slice("https://a"),
                COMPLETE,
                begin(),
                same,
                COMPLETE,
                down(404),
            ] {
                endpoints.of_slice(&event);
            }
            assert_eq!(shown(&endpoints).as_deref(), Some("https://a"));
            for event in ends {
                endpoints.of_slice(&event);
            }
            assert_eq!(shown(&endpoints).as_deref(), Some(""));
        }
    }

    // A moment without an answer at the start, and the slice was never read again.
    #[test]
    fn where_the_export_was_named_its_own_urls_hold_as_long_as_there_is_no_slice() {
        let mut endpoints = Endpoints::new(true);
        endpoints.of_export(&export("https://old"));
        endpoints.of_slice(&down(503));
        assert_eq!(shown(&endpoints), None);
        for event in [down(404), down(403)] {
            let mut endpoints = Endpoints::new(true);
            endpoints.of_export(&export("https://old"));
            endpoints.of_slice(&event);
            assert_eq!(shown(&endpoints).as_deref(), Some("https://old"));
        }
        endpoints.of_slice(&begin());
        endpoints.of_slice(&COMPLETE);
        assert_eq!(shown(&endpoints).as_deref(), Some("https://old"));
        // It is made later.
        endpoints.of_slice(&slice("https://new"));
        assert_eq!(shown(&endpoints).as_deref(), Some("https://new"));
        // What cannot be read now is what it was.
        endpoints.of_slice(&down(403));
        assert_eq!(shown(&endpoints).as_deref(), Some("https://new"));
        endpoints.of_slice(&SourceEvent::Gone(read(&json!({"metadata": {"name": "a"}}))));
        assert_eq!(shown(&endpoints).as_deref(), Some("https://old"));
        endpoints.of_export(&SourceEvent::Gone(read(&json!({"metadata": {"name": "a"}}))));
        assert_eq!(shown(&endpoints).as_deref(), Some(""));
        // Where a slice was named, the export's own are never used.
        let mut endpoints = Endpoints::new(false);
        endpoints.of_export(&export("https://old"));
        endpoints.of_slice(&down(404));
        assert_eq!(shown(&endpoints), None);
    }
}
