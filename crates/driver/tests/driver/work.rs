//! The border of the worked role: which sides it has, what it reads, what it asks for, and the work behind that. This alone
//! knows the servers.

use std::rc::Rc;
use std::time::Duration;

use driver::source::{Mode, Reading, Style};
use driver::{Feed, Opened, Perform, Priority, Servers};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType, Scope};

use crate::greeter::Greeter;

/// The time between two greetings.
pub const EVERY: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Desk,
    Shelf(u32),
}

/// What is read: the objects at the desk.
#[derive(Clone, Copy)]
pub struct Shelves;

impl Shelves {
    pub fn reading() -> Reading {
        Reading {
            resource: ResourceType::config_maps(),
            scope: Scope::default(),
            style: Style::Whole,
        }
    }
}

impl Feed<Side> for Shelves {
    fn side(self) -> Side {
        Side::Desk
    }

    fn priority(self) -> Priority {
        Priority::First
    }
}

/// Write a greeting at a shelf.
pub struct Greet(pub Side);

/// What came of that.
pub struct Greeted(pub Side, pub Result<(), Error>);

/// What talks to the sides: a name at the desk leads to a server.
pub struct Work(pub Rc<dyn Fn(&ObjectName) -> Cluster>);

impl Perform<Greeter> for Work {
    fn open(&self, _side: Side, name: ObjectName) -> Opened {
        let (server, mode) = (Rc::new(self.0(&name)), Mode::Watch);
        Opened { server, mode }
    }

    fn perform(&self, Greet(side): Greet, servers: &mut Servers<'_, Side>) -> Option<LocalBoxFuture<'static, Greeted>> {
        let there = servers.at(side)?;
        Some(async move { Greeted(side, greet(&there).await) }.boxed_local())
    }
}

async fn greet(shelf: &Cluster) -> Result<(), Error> {
    const GREETING: &str =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hello","namespace":"default"}}"#;
    let name = ObjectName::new("default", "hello");
    let (resource, body) = (ResourceType::config_maps(), GREETING.into());
    shelf.apply(&resource, &name, body, Content::Metadata).await.map(drop)
}
