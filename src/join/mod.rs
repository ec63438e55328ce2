//! How an edge joins a hub: `edge-syncer gen` registers it there, and writes what its cluster or its machine needs.
//!
//! Promises: at the hub, only what differs is written, and only objects with our label; a run that was interrupted is
//! completed by the next; the token is written into the output and nowhere else; the output is written last, and whole
//! or not at all.

mod advice;
mod client;
mod hub;
pub(crate) mod id;
pub(crate) mod labels;
mod leave;
mod manifest;
mod notes;
mod output;
mod patch;
mod prep;
mod register;
mod rights;
mod scoped;
mod token;

use std::error::Error;
use std::fmt;
use std::time::Duration;

use kube_lite::access::admin::Admin;
use serde_json::Value;

use client::Client;
use hub::{Identity, Wanted};
use manifest::Values;
use output::Part;
use register::Work;
use scoped::Scope;

pub use hub::Rbac;
pub use manifest::Components;
pub use output::Output;
pub use prep::Mailbox;

/// The namespace of a service, unless another one is asked for: it exists in every cluster, and configs may not touch it
/// anyway.
const NAMESPACE_OF_SERVICES: &str = "kube-system";

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Register the edge, and write all that it needs.
    Register,
    /// Write a new kubeconfig for an edge that is registered.
    Rotate,
    /// Remove what a registration has made.
    Unregister,
}

/// For what the output is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For `kubectl apply`.
    #[default]
    Manifest,
    /// For a service of systemd.
    Systemd,
}

/// Checked settings of `gen`.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What is to be done.
    pub action: Action,
    /// Name of the sync target.
    pub name: String,
    /// Its UID, if somebody has chosen one.
    pub uid: Option<String>,
    /// The hub, as the administrator reaches it.
    pub hub: Admin,
    /// As what the requests to it say that they come.
    pub user_agent: String,
    /// Where to find the mailbox workspace, if that is to be found: the hub is another workspace then.
    pub mailbox: Option<Mailbox>,
    /// The hub's URL as the edge reaches it, if that is another one.
    pub hub_url: Option<http::Uri>,
    /// The namespace of the service account at the hub.
    pub hub_namespace: Option<String>,
    /// That of the syncer at the edge.
    pub namespace: Option<String>,
    /// The image; empty where none is needed.
    pub image: String,
    /// For the syncer's `--qps`, if it is to have that flag.
    pub qps: Option<String>,
    /// For the syncer's `--burst`, in the same way.
    pub burst: Option<String>,
    /// 0 or 1.
    pub replicas: u8,
    /// What else is chosen.
    pub components: Components,
    /// Which permissions the syncer gets, if somebody has chosen that.
    pub rbac: Option<Rbac>,
    /// For what the output is.
    pub format: Format,
    /// Where the output is written.
    pub output: Output,
    /// How long a token is to last.
    pub lifetime: Duration,
    /// How long the hub may take to serve the configs.
    pub timeout: Duration,
    /// Nothing is written.
    pub is_dry: bool,
    /// Nothing is reported except why it failed.
    pub is_silent: bool,
    /// The time since 1970.
    pub now: Duration,
}

/// Why an edge could not join. What was done before stays; the same command continues from there.
#[derive(Debug)]
pub struct JoinError {
    what: String,
    why: String,
    made: Vec<String>,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hub: {}: {}", self.what, self.why)?;
        if !self.made.is_empty() {
            write!(
                f,
                "; done before: {}; the same command continues from there",
                self.made.join(", ")
            )?;
        }
        Ok(())
    }
}

impl Error for JoinError {}

/// Registers an edge at a hub and writes what it needs; `say` gets lines for people.
pub async fn run(settings: &Settings, say: fn(&str)) -> Result<(), Box<dyn Error>> {
    let say: fn(&str) = if settings.is_silent { |_| {} } else { say };
    let mut client = Client::open(&settings.hub, &settings.user_agent, say)?;
    if let Some(url) = settings
        .hub_url
        .as_ref()
        .filter(|_| settings.action != Action::Unregister)
    {
        let checked = notes::about_encryption(url, client.url());
        checked.map_err(|why| client.bad_flag("--hub-url", &why))?;
    }
    if let Some(mailbox) = &settings.mailbox {
        client = prep::find(&client, mailbox, settings, &say).await?;
    }
    join(settings, &client, &say).await
}

async fn join(settings: &Settings, client: &Client, say: &dyn Fn(&str)) -> Result<(), Box<dyn Error>> {
    let mut work = Work::new(client, say, settings.is_dry);
    // What is registered is at a hub that serves configs already.
    let patience = match settings.action {
        Action::Register => settings.timeout,
        Action::Rotate | Action::Unregister => Duration::ZERO,
    };
    let api = work.wait_for_api(patience).await?;
    let found = work.find(&settings.name, api, patience).await?;
    let wanted = Wanted {
        name: &settings.name,
        uid: settings.uid.as_deref(),
        namespace: settings.hub_namespace.as_deref(),
        at_edge: settings.namespace.as_deref(),
        hub_url: settings.hub_url.as_ref(),
    };
    let (identity, rbac, scope) = match settings.action {
        Action::Unregister => return Ok(unregister(&mut work, &wanted, &found, settings).await?),
        Action::Register => register(&mut work, &wanted, &found, settings).await?,
        // No permissions are written.
        Action::Rotate => (known(&work, &wanted, &found)?, Rbac::Scoped, None),
    };
    if settings.action == Action::Register && settings.format == Format::Manifest {
        let id = identity.id();
        let namespace = identity.at_edge.as_deref().unwrap_or(&id);
        let before = found.accounts.first().map(hub::namespace_at_edge);
        let moves = before.and_then(|before| notes::about_move(before, namespace));
        for note in notes::about_namespace(namespace).into_iter().chain(moves) {
            say(&note);
        }
    }
    if settings.is_dry {
        if settings.action == Action::Rotate {
            say(&format!("token: would be requested for {}", identity.id()));
        }
        say(NOTHING_WRITTEN);
        return Ok(());
    }
    let (token, until) = work.token(&identity, settings.lifetime).await?;
    let kubeconfig = kubeconfig(settings, client, &identity, &token, say);
    let written = kubeconfig.and_then(|kubeconfig| write(settings, &identity, (rbac, scope.as_ref()), &kubeconfig));
    written.map_err(|why| work.error("the output cannot be written", &why))?;
    say(&format!(
        "token: valid until {until}; {} syncs for {} with the UID {}",
        identity.id(),
        identity.name,
        identity.uid
    ));
    Ok(())
}

/// Removes the registration, and says what stays.
async fn unregister(
    work: &mut Work<'_>,
    wanted: &Wanted<'_>,
    found: &register::Found,
    settings: &Settings,
) -> Result<(), JoinError> {
    let (say, client) = (work.say, work.client);
    let objects = || found.config.iter().chain(&found.accounts);
    if let Some(why) = hub::is_another(objects(), wanted) {
        return Err(work.error(&format!("cannot unregister {}", wanted.name), &why));
    }
    let uids = hub::uids(objects(), wanted);
    let was_registered = work.unregister(wanted.name, found).await?;
    let was_named = leave::leave(work, &found.api.plurals, &uids, settings.now).await?;
    if work.remove_config(wanted.name, found).await? || was_registered || was_named {
        say(UNREGISTERED);
        if let Ok(Some(uid)) = hub::identify(None, &found.accounts, wanted).map(|known| known.uid) {
            say(&format!("to join it again, give its UID: --uid={uid}"));
        }
    } else {
        say(&format!(
            "nothing of the name {} is registered at {}",
            wanted.name,
            client.url()
        ));
    }
    if settings.is_dry {
        say(NOTHING_WRITTEN);
    }
    Ok(())
}

/// The last message of a dry run.
const NOTHING_WRITTEN: &str = "nothing was written";

/// The message about what remains of an unregistered edge.
const UNREGISTERED: &str = "what stays: at the hub, objects that were synced from the edge, and configs that select objects; \
                            at the edge, the syncer until you delete it, and all copies";

/// Registers the edge; returns its identity and its permissions, and what the configs need, if they follow from that.
async fn register(
    work: &mut Work<'_>,
    wanted: &Wanted<'_>,
    found: &register::Found,
    settings: &Settings,
) -> Result<(Identity, Rbac, Option<Scope>), JoinError> {
    let identity = work.identify(wanted, found, settings.now)?;
    if let Some(note) = notes::about_others(found.others.iter().filter_map(hub::sync_target_of)) {
        (work.say)(&note);
    }
    let rbac = rights::choose(work, found, &identity, settings.rbac).await?;
    let scope = match rbac {
        Rbac::Scoped => scoped::scope(work, &identity, settings).await?,
        Rbac::Wide => None,
    };
    let at_hub = scope.as_ref().map(|scope| scope.at_hub.clone());
    let rules = at_hub.unwrap_or_else(|| manifest::hub_rules(rbac, &identity.id(), &identity.edge_name()));
    work.register(&identity, found, rbac, &rules).await?;
    Ok((identity, rbac, scope))
}

/// The identity that is registered, for actions that create nothing.
fn known(work: &Work<'_>, wanted: &Wanted<'_>, found: &register::Found) -> Result<Identity, JoinError> {
    let what = format!("cannot get a new token for {}", wanted.name);
    let config = register::ours(found, wanted.name);
    let mut known = hub::identify(config, &found.accounts, wanted).map_err(|why| work.error(&what, &why))?;
    if found.accounts.is_empty() {
        let why = match config {
            Some(_) => {
                "its ServiceAccount is missing at the hub: run the command without --rotate, which creates it again"
            }
            None => {
                "it is not registered: run the command without --rotate; if an edge syncs under this name already, give its \
                 UID with --uid"
            }
        };
        return Err(work.error(&what, &why));
    }
    let uid = known.uid.take();
    let uid = uid.ok_or_else(|| work.error(&what, &"its ServiceAccount does not say its UID: give it with --uid"))?;
    Ok(known.with(wanted.name, uid))
}

/// The kubeconfig for the syncer, as YAML.
fn kubeconfig(
    settings: &Settings,
    client: &Client,
    identity: &Identity,
    token: &str,
    say: &dyn Fn(&str),
) -> Result<String, String> {
    let url = identity.hub_url.as_ref().unwrap_or(client.url());
    if settings.hub_url.is_none() && identity.hub_url.is_some() {
        say(&format!(
            "note: the edge reaches the hub at {}, as it is registered; --hub-url gives another URL",
            token::server_url(url, false)
        ));
    }
    if identity.hub_url.is_none() && token::is_of_this_machine(url) {
        let whither = match settings.format {
            Format::Manifest => "leads from a pod to the pod itself",
            Format::Systemd => "leads from a machine to that machine itself, also if you copy the files to another one",
        };
        say(&format!(
            "note: {url} {whither}; give the URL that the edge reaches with --hub-url"
        ));
    }
    let unencrypted = notes::about_encryption(url, client.url());
    let unencrypted = unencrypted.map_err(|why| format!("{why}, or give another URL with --hub-url"))?;
    if let Some(note) = unencrypted {
        say(&note);
    }
    if client.has_proxy() {
        say("note: the proxy of your kubeconfig is not passed on to the edge");
    }
    let server = token::server_url(url, token::names_its_workspace(token));
    let cluster = token::cluster(&server, client.authority(), client.is_insecure(), client.server_name());
    manifest::yaml(&manifest::kubeconfig(&cluster, &identity.namespace, token))
}

fn write(
    settings: &Settings,
    identity: &Identity,
    (rbac, scope): (Rbac, Option<&Scope>),
    kubeconfig: &str,
) -> Result<(), String> {
    let id = identity.id();
    let namespace = identity.at_edge.as_deref();
    let written = match settings.format {
        Format::Systemd => settings.output.write_all(&service(settings, identity, kubeconfig)),
        Format::Manifest => {
            let values = Values {
                id: &id,
                name: &identity.name,
                uid: &identity.uid,
                namespace: namespace.unwrap_or(&id),
                image: &settings.image,
                qps: settings.qps.as_deref(),
                burst: settings.burst.as_deref(),
                replicas: settings.replicas,
                components: settings.components,
                rbac,
                scope,
                kubeconfig,
            };
            let documents: Vec<Value> = match settings.action {
                Action::Rotate => manifest::secret(&values),
                _ => manifest::documents(&values),
            };
            settings.output.write(&manifest::print(&documents, scope)?)
        }
    };
    written.map_err(|error| error.to_string())
}

/// The files of a service.
fn service(settings: &Settings, identity: &Identity, kubeconfig: &str) -> Vec<Part> {
    let kubeconfig = Part {
        name: "hub.kubeconfig",
        text: kubeconfig.to_owned(),
        is_private: true,
    };
    if settings.action == Action::Rotate {
        return vec![kubeconfig];
    }
    let namespace = identity.at_edge.as_deref().unwrap_or(NAMESPACE_OF_SERVICES);
    let (name, uid) = (&identity.name, &identity.uid);
    let mut flags = manifest::rate(settings.qps.as_deref(), settings.burst.as_deref());
    flags.push("--listen-address=localhost:8080".to_owned());
    flags.extend(settings.components.flags());
    let text = format!(
        "SYNC_TARGET_NAME={name}\nSYNC_TARGET_UID={uid}\nNAMESPACE={namespace}\nEDGE_SYNCER_FLAGS=\"{}\"\n",
        flags.join(" ")
    );
    let environment = Part {
        name: "edge-syncer.env",
        text,
        is_private: false,
    };
    let units = manifest::UNITS.map(|(name, text)| Part {
        name,
        text: text.to_owned(),
        is_private: false,
    });
    // The kubeconfig last: a service starts when it is there.
    units.into_iter().chain([environment, kubeconfig]).collect()
}
