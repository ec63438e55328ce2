//! What a config workspace has of one target: the target, and the templates that its sources name. For `init render`.

use std::fmt::{self, Display};
use std::rc::Rc;

use driver::logger;
use kube_lite::Error;
use kube_lite::access::{AccessError, AccessSource};
use kube_lite::read::list_all;

use crate::fill::{read_template, template_name};
use crate::kcp;
use crate::kinds::{InitTarget, InitTemplate};
use crate::servers::Kcp;
use crate::workspace::ConfigWorkspace;

/// Where it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// How kcp is reached.
    pub source: AccessSource,
    /// The workspace.
    pub config_workspace: ConfigWorkspace,
    /// How the program names itself to servers.
    pub user_agent: String,
}

/// A target with its templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The target.
    pub target: InitTarget,
    /// The templates that there are of those which it names.
    pub templates: Vec<InitTemplate>,
}

/// Why there is nothing.
#[derive(Debug)]
pub enum StoredError {
    /// The kubeconfig cannot be used.
    Access(AccessError),
    /// The workspace has none, or several, or not this one.
    Choice(Option<String>, Vec<String>),
    /// This cannot be read.
    Unread(String, Error),
}

impl Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Access(error) => error.fmt(f),
            Self::Choice(_, names) if names.is_empty() => f.write_str("there is no InitTarget"),
            Self::Choice(None, names) => {
                write!(
                    f,
                    "there are several InitTargets, choose one with --target-name: {}",
                    names.join(", ")
                )
            }
            Self::Choice(Some(name), names) => write!(f, "there is no InitTarget {name}, only {}", names.join(", ")),
            Self::Unread(what, error) => write!(f, "{what} cannot be read: {error}"),
        }
    }
}

/// Reads a target, the only one if there is no name.
pub async fn stored(at: &At, name: Option<&str>) -> Result<Stored, StoredError> {
    let kcp = Kcp::open(at.source.clone(), at.user_agent.clone(), logger::since_1970).map_err(StoredError::Access)?;
    let config = Rc::new(kcp.config(&at.config_workspace));
    let listed = list_all::<InitTarget>(&config, kcp::init_targets(), None).await;
    let all = listed.map_err(|error| StoredError::Unread("InitTargets".to_owned(), error))?;
    let target = chosen(all, name)?;
    let mut templates: Vec<InitTemplate> = Vec::new();
    for source in target.spec.sources.iter().filter_map(|source| source.template.as_ref()) {
        if templates.iter().all(|known| known.metadata.name != source.name) {
            let read = read_template(&template_name(&target, &source.name), &config).await;
            let read = read.map_err(|error| StoredError::Unread(format!("InitTemplate {}", source.name), error))?;
            templates.extend(read);
        }
    }
    Ok(Stored { target, templates })
}

/// The target that is meant.
fn chosen(mut all: Vec<InitTarget>, name: Option<&str>) -> Result<InitTarget, StoredError> {
    let found = match name {
        Some(name) => all.iter().position(|target| target.metadata.name == name),
        None => (all.len() == 1).then_some(0),
    };
    let names = |all: Vec<InitTarget>| all.into_iter().map(|target| target.metadata.name).collect();
    match found {
        Some(at) => Ok(all.swap_remove(at)),
        None => Err(StoredError::Choice(name.map(str::to_owned), names(all))),
    }
}
