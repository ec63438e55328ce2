use super::*;

fn answer(code: u16, body: &str) -> Error {
    Error::from_answer(code, None, body.as_bytes())
}

const OBJECT_404: &str = r#"{"kind":"Status","status":"Failure","message":"configmaps \"a\" not found","reason":"NotFound","details":{"name":"a","kind":"configmaps"},"code":404}"#;
const TYPE_404: &str = r#"{"kind":"Status","status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}"#;

#[test]
fn only_an_answer_about_the_object_itself_proves_its_absence() {
    assert!(answer(404, OBJECT_404).proves_absent("a"));
    assert!(!answer(404, OBJECT_404).proves_absent("b"));
    for (code, body) in [
        (404, TYPE_404),
        (404, "404 page not found"),
        (404, "<html>no such host</html>"),
        (401, OBJECT_404),
        (403, OBJECT_404),
        (500, ""),
    ] {
        assert!(!answer(code, body).proves_absent("a"), "{code} {body}");
    }
    assert!(!Error::Unreachable("reset".into()).proves_absent("a"));
    assert!(!Error::BadAnswer("html".into()).proves_absent("a"));
}

#[test]
fn a_refusal_is_final_unless_the_server_may_answer_the_next_time() {
    for (code, expected) in [
        (400, true),
        (401, false),
        (403, true),
        (404, true),
        (409, true),
        (422, true),
        (429, false),
        (500, false),
        (503, false),
    ] {
        assert_eq!(answer(code, OBJECT_404).is_final(), expected, "{code}");
    }
    assert!(!answer(404, TYPE_404).is_final());
    assert!(!Error::Unreachable("reset".into()).is_final());
}

#[test]
fn tells_a_missing_type_from_a_missing_object_and_a_missing_namespace() {
    assert!(answer(404, TYPE_404).is_type_not_served());
    assert!(answer(404, "404 page not found").is_type_not_served());
    assert!(!answer(404, OBJECT_404).is_type_not_served());
    let namespace = r#"{"kind":"Status","reason":"NotFound","details":{"name":"shop","kind":"namespaces"},"code":404}"#;
    assert_eq!(answer(404, namespace).missing_namespace(), Some("shop"));
    assert_eq!(answer(404, OBJECT_404).missing_namespace(), None);
}

#[test]
fn one_request_that_took_too_long_is_not_a_side_that_is_gone() {
    let body = r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}"#;
    assert!(!answer(504, body).is_no_answer());
    assert!(answer(504, "<html>Gateway Timeout</html>").is_no_answer());
    assert!(answer(503, "<html>503 Service Unavailable</html>").is_no_answer());
    assert!(
        !answer(503, "service unavailable\n").is_no_answer(),
        "one aggregated API"
    );
    for code in [401, 502, 503, 504] {
        let error = answer(code, "");
        assert!(
            !error.is_unreachable() && !error.is_unauthorized(),
            "{code} to one request"
        );
    }
}

#[test]
fn reads_retry_after_from_header_first_and_body_second() {
    let body = br#"{"kind":"Status","reason":"TooManyRequests","details":{"retryAfterSeconds":7},"code":429}"#;
    let header = Some(Duration::from_secs(3));
    assert_eq!(Error::from_answer(429, header, body).retry_after(), header);
    assert_eq!(
        Error::from_answer(429, None, body).retry_after(),
        Some(Duration::from_secs(7))
    );
    let endless = br#"{"kind":"Status","details":{"retryAfterSeconds":18446744073709551615},"code":429}"#;
    for error in [
        Error::from_answer(429, None, endless),
        Error::from_answer(503, Some(Duration::MAX), b""),
    ] {
        assert_eq!(error.retry_after(), Some(LONGEST_ASKED));
    }
}

#[test]
fn what_an_update_is_refused_for_is_known_by_its_code_and_not_by_its_words() {
    let refused = |code: u16, message: &str| {
        let body = serde_json::json!({"kind": "Status", "reason": "X", "message": message, "code": code});
        answer(code, &body.to_string()).may_be_of_update()
    };
    for message in [
        "field is immutable",
        "can only be set once",
        "",
        "failed rule: self == oldSelf",
    ] {
        for code in [400, 403, 422] {
            assert!(refused(code, message), "{code} {message}");
        }
        for code in [401, 404, 409, 410, 413, 429, 500, 503] {
            assert!(!refused(code, message), "{code} {message}");
        }
    }
    // A policy has a reason of four, of which one is the storage's and one that of credentials.
    for code in [401, 403, 413, 422] {
        let words = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
        assert!(refused(code, words), "{code}");
    }
    // A webhook may answer with any code. The beginning is the API server's own.
    for code in [404, 409, 413, 500] {
        assert!(
            refused(code, "admission webhook \"w\" denied the request: no"),
            "{code}"
        );
    }
}

#[test]
fn long_words_are_cut() {
    let long = "é".repeat(20_000);
    let body = serde_json::json!({"kind": "Status", "reason": long, "message": format!("begin {long} end"),
        "details": {"name": long, "kind": long, "causes": [{"reason": long, "field": long}]}});
    let error = answer(422, &body.to_string());
    let status = error.status().unwrap();
    assert!(status.message.starts_with("begin ") && status.message.ends_with(" end"));
    assert!(format!("{status:?}").len() < 5000);
    let short = "é".repeat(KEPT_WORDS);
    assert_eq!(shortened(&short), short);
}

#[test]
fn no_server_asks_for_more_time_than_a_clock_can_add() {
    let body = br#"{"kind":"Status","details":{"retryAfterSeconds":18446744073709551615},"code":429}"#;
    let header = Some(Duration::from_secs(u64::MAX));
    for error in [
        Error::from_answer(429, None, body),
        Error::from_answer(429, header, b"busy"),
        Error::from_answer(429, header, br#"{"kind":"Status"}"#),
        Error::from_watch_error(body),
    ] {
        assert_eq!(error.retry_after(), Some(LONGEST_ASKED), "{error:?}");
    }
}

#[test]
fn watch_errors_carry_their_code_in_the_body() {
    let gone = br#"{"kind":"Status","reason":"Expired","message":"too old resource version","code":410}"#;
    assert!(Error::from_watch_error(gone).is_expired());
    assert!(matches!(Error::from_watch_error(b"{}"), Error::BadAnswer(_)));
}
