//! Another client acts at each request of a history in turn, just before it takes effect and just after: whatever the syncer
//! has read, what it then writes has to be right for what there is (issue 13).

use std::rc::Rc;
use std::time::Duration;

use edge_syncer::side::Side;
use serde_json::json;

use crate::changes::downsync_type;
use crate::sim::classes::Class;
use crate::sim::others::{DEEDS, Deed, Others, Plan};
use crate::sim::run::{Outcome, Run, tell};
use crate::sim::store::Key;
use crate::sim::trace::SHORT;
use crate::sim::weather::Moment;
use crate::sim::world::CONFIGS;
use crate::stories::seconds;

/// More requests than a history has.
const MANY: u32 = 1000;

/// What becomes of the object in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Goes,
    Stays,
}

/// An object comes, its copy reports, the object changes and goes, or stays.
async fn history(run: &mut Run, key: &Key, from: Side, end: Fate) {
    let (origins, copies) = match from {
        Side::Hub => (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge)),
        Side::Edge => (Rc::clone(&run.world.edge), Rc::clone(&run.world.hub)),
    };
    origins.create("people", "namespaces", "", &key.namespace, json!({}));
    let body = json!({"spec": {"replicas": 1}});
    origins.create("people", &key.resource, &key.namespace, &key.name, body);
    run.start();
    seconds(20).await;
    let reporting = if from == Side::Hub { &copies } else { &origins };
    reporting.patch_status("controller", key, &json!({"status": {"found": 1}}));
    origins.patch("people", key, &json!({"spec": {"replicas": 2}}));
    seconds(20).await;
    if end == Fate::Goes {
        origins.delete(key);
    }
    seconds(40).await;
}

/// One goes down.
async fn down(run: &mut Run, end: Fate) {
    downsync_type(run, "the-one", "apps", "deployments", "v1");
    history(run, &Key::new("deployments.apps", "shop", "d"), Side::Hub, end).await;
}

/// One goes up.
async fn up(run: &mut Run, end: Fate) {
    let all = json!([{"apiGroup": "apps", "resources": ["deployments"], "namespaces": ["field"], "names": ["*"]}]);
    let hub = &run.world.hub;
    hub.create("people", CONFIGS, "", "upward", json!({"spec": {"upsync": all}}));
    history(run, &Key::new("deployments.apps", "field", "d"), Side::Edge, end).await;
}

/// What others do, at which request, and just before it takes effect or just after.
type Deeds<'a> = &'a [(Deed, u32, Moment)];

/// Tells a history in which others do that; each deed counts requests from the one before. `None` if it did not come to all
/// of it.
fn history_with(from: Side, deeds: Deeds<'_>, end: Fate) -> Option<Outcome> {
    let mut done = false;
    let outcome = tell(&[Class::Between], from == Side::Edge, async |run| {
        // Everything is heard of within moments.
        run.ledger.borrow_mut().overwrites = Duration::from_secs(2);
        let others = Rc::new(Others::default());
        for side in [Side::Hub, Side::Edge] {
            run.server(side).weather.borrow_mut().others = Rc::clone(&others);
        }
        let namespace = if from == Side::Hub { "shop" } else { "field" };
        let key = Key::new("deployments.apps", namespace, "d");
        run.note(&format!("{deeds:?}"));
        for &(deed, left, moment) in deeds {
            let key = key.clone();
            others.intend(Plan {
                left,
                moment,
                deed,
                key,
            });
        }
        match from {
            Side::Hub => down(run, end).await,
            Side::Edge => up(run, end).await,
        }
        done = !others.waits();
        others.rest();
    });
    done.then_some(outcome)
}

/// Fails if any of these broke a promise: says which ones, and tells the first.
fn check_all(reported: impl Iterator<Item = Outcome>) {
    let broken: Vec<Outcome> = reported.filter(|outcome| !outcome.broken.is_empty()).collect();
    let lines: Vec<String> = broken.iter().map(Outcome::headline).collect();
    assert!(broken.is_empty(), "{}\n{}", lines.join("\n"), broken[0].reported(SHORT));
}

fn whatever_others_do_at_any_request(from: Side, deeds: &[Deed]) {
    for &deed in deeds {
        for moment in [Moment::Before, Moment::After] {
            let reported = (0..MANY).map_while(|request| history_with(from, &[(deed, request, moment)], Fate::Goes));
            let reported: Vec<Outcome> = reported.collect();
            assert!(
                (20..MANY as usize).contains(&reported.len()),
                "{} requests",
                reported.len()
            );
            check_all(reported.into_iter());
        }
    }
}

#[test]
fn what_goes_down_is_right_whatever_others_do_at_any_request() {
    whatever_others_do_at_any_request(Side::Hub, DEEDS);
}

#[test]
fn what_goes_up_is_right_whatever_others_do_at_any_request() {
    whatever_others_do_at_any_request(Side::Edge, DEEDS);
}

/// What others do one soon after the other, from the time on in which the object is there.
fn whatever_others_do_twice(from: Side, first: Deed, second: Deed, end: Fate) {
    for moment in [Moment::Before, Moment::After] {
        let deeds = |request, later| [(first, request, moment), (second, later, Moment::After)];
        let reported = (0..4)
            .flat_map(|later| (15..MANY).map_while(move |request| history_with(from, &deeds(request, later), end)));
        check_all(reported);
    }
}

#[test]
fn a_copy_that_has_lost_its_label_goes_with_its_origin_whichever_is_first() {
    whatever_others_do_twice(Side::Hub, Deed::Unlabel, Deed::OriginGoes, Fate::Goes);
    whatever_others_do_twice(Side::Hub, Deed::OriginGoes, Deed::Unlabel, Fate::Goes);
}

#[test]
fn what_people_do_to_a_copy_is_reverted_also_where_they_do_it_twice() {
    for second in [Deed::Edit, Deed::HandsOff] {
        whatever_others_do_twice(Side::Hub, Deed::Edit, second, Fate::Goes);
        whatever_others_do_twice(Side::Hub, second, Deed::Edit, Fate::Goes);
    }
}

#[test]
fn what_the_origin_drops_goes_also_where_others_have_it_too_or_the_version_went() {
    for from in [Side::Hub, Side::Edge] {
        for first in [Deed::Share, Deed::DropVersion] {
            whatever_others_do_twice(from, first, Deed::OriginDrops, Fate::Stays);
            whatever_others_do_twice(from, Deed::OriginDrops, first, Fate::Stays);
        }
    }
}
