//! Reading and writing the record of synced types.

use kube_lite::logging::log_line;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType};

use crate::model::effect::{Kept, Names, parse_record, render_record};

/// Reads it from the edge, with the records that it takes over; an empty one if there is none.
pub(crate) async fn read(edge: &Cluster, names: &Names) -> Result<Kept, Error> {
    let mut kept = match read_one(edge, &names.own).await? {
        Some(kept) => kept,
        None => read_left(edge, &names.legacy).await?,
    };
    for former in &names.former {
        kept.types.extend(read_left(edge, former).await?.types);
    }
    Ok(kept)
}

/// Reads a record to take over. If this syncer may not read it, it still keeps a record of its own.
async fn read_left(edge: &Cluster, name: &ObjectName) -> Result<Kept, Error> {
    match read_one(edge, name).await {
        Err(error) if error.status().is_some_and(|status| status.code == 403) => {
            log_line!(
                Warn,
                FormerRecordForbidden,
                "cannot read the record of an earlier syncer; copies of types that this one does not select are preserved",
                side = edge.name(),
                object = name.of_kind("ConfigMap"),
                error = error,
                advice = "allow it to get that ConfigMap, or delete it"
            );
            Ok(Kept::default())
        }
        other => other.map(Option::unwrap_or_default),
    }
}

async fn read_one(edge: &Cluster, name: &ObjectName) -> Result<Option<Kept>, Error> {
    match edge.get(&ResourceType::config_maps(), name, Content::Full).await {
        Ok(body) => {
            let (kept, unbelievable) = parse_record(name, &body)?;
            if !unbelievable.is_empty() {
                log_line!(
                    Warn,
                    RecordUnbelievable,
                    "a part of the record cannot be what it should be, and is not believed",
                    side = edge.name(),
                    object = name.of_kind("ConfigMap"),
                    keys = unbelievable.join(","),
                    advice = "find out what else writes that ConfigMap; the syncer writes it again"
                );
            }
            Ok(Some(kept))
        }
        Err(error) if error.proves_absent(&name.name) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes it to the edge.
pub(super) async fn write(edge: &Cluster, name: &ObjectName, kept: &Kept) -> Result<(), Error> {
    let body = render_record(name, kept);
    let resource = ResourceType::config_maps();
    edge.apply(&resource, name, body, Content::Metadata).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::FutureExt;
    use futures_util::future::LocalBoxFuture;
    use serde_json::json;

    use kube_lite::{ApiServer, RateLimit, Response};

    use super::*;
    use crate::api::FIELD_MANAGER;
    use crate::side::Side;
    use crate::sync::ownership::SyncTarget;

    /// An edge that has one answer to everything.
    struct Says(&'static str);

    impl ApiServer for Says {
        fn send(&self, _: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
            let answer = Response::whole(200, self.0);
            async move { Ok(answer) }.boxed_local()
        }
    }

    #[tokio::test]
    async fn an_answer_about_something_else_is_no_record() {
        const RECORD: &str = r#"{"metadata":{"namespace":"default","name":"edge-syncer-types-a"},"data":{"hub":"u1"}}"#;
        let sync_target = SyncTarget {
            uid: "a".into(),
            former: Vec::new(),
        };
        let names = Names::of(&sync_target, "default");
        for (answer, expected) in [
            (RECORD, true),
            ("<html>log in</html>", false),
            ("{}", false),
            (r#"{"kind":"Status","metadata":{},"error":"log in"}"#, false),
            (r#"{"metadata":{"namespace":"default","name":"another"}}"#, false),
        ] {
            let edge = Cluster::new(
                Side::Edge.word(),
                Box::new(Says(answer)),
                RateLimit::new(None),
                FIELD_MANAGER,
            );
            assert_eq!(read(&edge, &names).await.is_ok(), expected, "reading {answer}");
            assert_eq!(
                write(&edge, &names.own, &Kept::default()).await.is_ok(),
                expected,
                "writing {answer}"
            );
        }
    }

    /// An edge that has these `ConfigMap`s, and refuses to show the one called `refused`.
    struct Has(&'static [(&'static str, &'static str)], &'static str);

    impl ApiServer for Has {
        fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
            let name = request.uri().path().rsplit('/').next().unwrap_or_default();
            let found = self.0.iter().find(|(had, _)| *had == name);
            let (code, body) = match found {
                _ if name == self.1 => (403, r#"{"kind":"Status","code":403,"reason":"Forbidden"}"#.to_owned()),
                Some((_, data)) => (
                    200,
                    format!(r#"{{"metadata":{{"namespace":"default","name":"{name}"}},"data":{data}}}"#),
                ),
                None => (
                    404,
                    json!({"kind": "Status", "reason": "NotFound", "code": 404, "details": {"name": name}}).to_string(),
                ),
            };
            let answer = Response::whole(code, body.leak());
            async move { Ok(answer) }.boxed_local()
        }
    }

    #[tokio::test]
    async fn a_record_of_its_own_and_what_earlier_syncers_have_left() {
        const H1: &str = "11111111-0000-4000-8000-000000000000";
        const OWN: (&str, &str) = (
            "edge-syncer-types-new",
            r#"{"hub":"11111111-0000-4000-8000-000000000000","types":"/v1/secrets"}"#,
        );
        const H2: &str = "22222222-0000-4000-8000-000000000000";
        const LEGACY: (&str, &str) = (
            "edge-syncer-types",
            r#"{"hub":"22222222-0000-4000-8000-000000000000","types":"/v1/configmaps"}"#,
        );
        const FORMER: (&str, &str) = (
            "edge-syncer-types-old",
            r#"{"hub":"33333333-0000-4000-8000-000000000000","types":"/v1/pods"}"#,
        );
        let sync_target = SyncTarget {
            uid: "new".into(),
            former: vec!["old".into()],
        };
        let names = Names::of(&sync_target, "default");
        for (has, refused, hub, types) in [
            (&[][..], "", "", &[][..]),
            (&[OWN, LEGACY], "", H1, &["secrets"]),
            (&[LEGACY], "", H2, &["configmaps"]),
            (&[OWN, FORMER, LEGACY], "", H1, &["pods", "secrets"]),
            (&[FORMER], "", "", &["pods"]),
            (&[OWN], FORMER.0, H1, &["secrets"]),
            (&[], LEGACY.0, "", &[]),
        ] {
            let edge = Cluster::new(
                Side::Edge.word(),
                Box::new(Has(has, refused)),
                RateLimit::new(None),
                FIELD_MANAGER,
            );
            let kept = read(&edge, &names).await.unwrap();
            let found: Vec<&str> = kept.types.iter().map(|known| &*known.resource).collect();
            assert_eq!((&*kept.hub, &found[..]), (hub, types), "{has:?}");
        }
        let edge = Cluster::new(
            Side::Edge.word(),
            Box::new(Has(&[], OWN.0)),
            RateLimit::new(None),
            FIELD_MANAGER,
        );
        read(&edge, &names).await.unwrap_err();
    }
}
