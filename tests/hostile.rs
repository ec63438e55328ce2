//! What hostile, odd or merely busy peers do, between real API servers: other hubs and other edges, controllers that copy,
//! delete and change, people who delete what others need, servers that hang, lie or flood.

#![expect(clippy::panic, reason = "in tests a failure is one")]

mod support;

#[path = "hostile/advice.rs"]
mod advice;
#[path = "hostile/bench.rs"]
mod bench;
#[path = "hostile/bounds.rs"]
mod bounds;
#[path = "hostile/busy.rs"]
mod busy;
#[path = "hostile/choices.rs"]
mod choices;
#[path = "hostile/clocks.rs"]
mod clocks;
#[path = "hostile/configs.rs"]
mod configs;
#[path = "hostile/conflicting.rs"]
mod conflicting;
#[path = "hostile/defaults.rs"]
mod defaults;
#[path = "hostile/duplicates.rs"]
mod duplicates;
#[path = "hostile/edits.rs"]
mod edits;
#[path = "hostile/emptied.rs"]
mod emptied;
#[path = "hostile/figures.rs"]
mod figures;
#[path = "hostile/filled_in.rs"]
mod filled_in;
#[path = "hostile/front.rs"]
mod front;
#[path = "hostile/installers.rs"]
mod installers;
#[path = "hostile/jobs.rs"]
mod jobs;
#[path = "hostile/kept.rs"]
mod kept;
#[path = "hostile/liar.rs"]
mod liar;
#[path = "hostile/lines.rs"]
mod lines;
#[path = "hostile/managers.rs"]
mod managers;
#[path = "hostile/many_watches.rs"]
mod many_watches;
#[path = "hostile/one_cluster.rs"]
mod one_cluster;
#[path = "hostile/outages.rs"]
mod outages;
#[path = "hostile/owners.rs"]
mod owners;
#[path = "hostile/passing.rs"]
mod passing;
#[path = "hostile/recreated.rs"]
mod recreated;
#[path = "hostile/refused.rs"]
mod refused;
#[path = "hostile/replace.rs"]
mod replace;
#[path = "hostile/schemas.rs"]
mod schemas;
#[path = "hostile/takers.rs"]
mod takers;
#[path = "hostile/text.rs"]
mod text;
#[path = "hostile/typos.rs"]
mod typos;
#[path = "hostile/unchangeable.rs"]
mod unchangeable;
#[path = "hostile/unprinted.rs"]
mod unprinted;
#[path = "hostile/versions.rs"]
mod versions;
#[path = "hostile/webhooks.rs"]
mod webhooks;
