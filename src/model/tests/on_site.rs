//! What the page for people on site says.

use driver::serve::HealthQuery;
use tokio::sync::oneshot;

use super::*;

impl Bench {
    fn page(&mut self) -> String {
        // One that was made within a second is given again.
        self.pass(2 * SECOND);
        let (answer, mut page) = oneshot::channel();
        let now = Duration::from_secs(1_000_000);
        self.tell(Event::Asked(HealthQuery::Page { now, answer }));
        String::from_utf8(page.try_recv().expect("it is answered").to_vec()).expect("it is text")
    }

    fn page_shows(&mut self, parts: &[&str]) {
        let page = self.page();
        for part in parts {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}

#[test]
fn the_page_shows_what_fails_what_is_held_and_how_many_objects_there_are() {
    let mut bench = Bench::new();
    bench.page_shows(&["<p>the configs are not known yet"]);
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d"]);
    let all_is_good =
        ["<h2>Objects</h2><ul><li class=good>✔ <b><bdi>configmaps, downsync</bdi></b><br><bdi>4 synced</bdi>"];
    bench.page_shows(&all_is_good);
    assert!(!bench.page().contains("What fails") && !bench.page().contains("Held deletes"));
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 20));
    bench.fail(Side::Edge, answer(422, "Invalid", "no & never"));
    bench.page_shows(&[
        "<h2>What fails</h2><ul><li class=bad>✗ <b><bdi>ConfigMap/shop/a</bdi></b><br><bdi>edge, ObjectRejected since ",
        ": no &amp; never",
        "configmaps, downsync</bdi></b><br><bdi>3 synced, 1 failing</bdi>",
    ]);
    bench.list(origins, &[config_map("a", 20)], 30);
    let token = bench.token();
    bench.page_shows(&[
        "<h2>Held deletes</h2><ul><li>… <b><bdi>downsync</bdi></b><br><bdi>3 of 4 copies are to be deleted",
        "3 objects are held; confirm with the annotation edge.kubestellar.io/confirm-deletes=",
        &token,
        "0 synced, 1 failing, 3 held</bdi>",
    ]);
}

#[test]
fn the_page_shows_what_configs_ask_for_and_cannot_be_followed() {
    let mut bench = Bench::listed();
    bench.config_says(&config(
        "wrong",
        &json!({"upsync": [{"apiGroup": "", "resources": ["Shop!"], "names": ["*"]}]}),
    ));
    bench.page_shows(&[
        "cannot be followed</h2><ul><li class=bad>✗ <b><bdi>SyncerConfig//wrong spec.upsync[0].resources[0]</bdi>",
    ]);
}
