//! Whatever a template says, rendering it ends, in text or in an error, and never panics.

use proptest::prelude::*;

use super::function::{Function, Type};
use super::*;
use crate::sprig::LIBRARY;

fn rendered(text: &str) -> Result<Vec<u8>, TemplateError> {
    let data = Data::new("the template's data")
        .with("ClusterName", "2abc")
        .with("ClusterPath", "root:org");
    let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    Template::parse("t", text, &LIBRARY)?.render_bytes(&data, now)
}

/// Arguments of all types, with what is hard about them.
fn argument() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "nil",
            "true",
            "false",
            "0",
            "1",
            "-1",
            "3",
            "9223372036854775807",
            "-9223372036854775808",
            "1.5",
            "-0.0",
            "1e308",
            ".",
            "$",
            "$x",
            "$d",
            "$l",
            ".ClusterName",
            "\"\"",
            "\"a\"",
            "\"a,b,c\"",
            "\"é日本😀\"",
            "\"\\xff\\x00\"",
            "\"[a-z]+(x*)\"",
            "\"{\\\"a\\\":[1,{}]}\"",
            "\"1.2.3-a.1+b\"",
            "\">=1 <2 || ^0.1\"",
            "\"2006-01-02T15:04:05Z07:00\"",
            "\"-1h2.5s\"",
            "\"%v %d %-8.3s %[2]*.*f %q %x %z\"",
            "\"http://u:p@h:80/a?b#c\"",
            "\"Europe/Berlin\"",
            "(list)",
            "(list 1 \"a\" nil 2.5)",
            "(list (list 1) (dict \"a\" 1))",
            "(until 3)",
            "(splitList \",\" \"a,b\")",
            "(dict)",
            "(dict \"a\" (dict \"b\" 1) \"c\" (list 1))",
            "(split \",\" \"a,b\")",
            "(now)",
            "(semver \"1.2.3\")",
            "(int64 5)",
            "(index \"a\" 0)",
            "(rest (list))",
            "(float64 \"nan\")",
            "(float64 \"inf\")",
            "(toDate \"2006\" \"0001\")",
            "(repeat 100 \"ab \")",
            "(chunk 2 (list 1 2 3))",
            "(fromJson \"[1e400]\")",
        ])
        .prop_map(str::to_owned),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<i16>().prop_map(|number| number.to_string()),
        "\\PC{0,8}"
            .prop_map(|text| format!("{text:?}").replace("\\u{", "\\u{"))
            .prop_filter("Go has no such escape", |text| !text.contains("\\u{")),
    ]
}

/// A call of any function, mostly with as many arguments as it takes.
fn call() -> impl Strategy<Value = String> {
    let functions: Vec<&'static Function> = LIBRARY.all().collect();
    argument().prop_recursive(2, 12, 4, move |inner| {
        (
            prop::sample::select(functions.clone()),
            prop::collection::vec(inner, 6),
            0..3_usize,
        )
            .prop_map(|(function, arguments, more)| {
                let more = function.more.map_or(0, |_| more);
                let arguments = &arguments[..(function.takes.len() + more).min(6)];
                format!("({} {})", function.name, arguments.join(" "))
            })
    })
}

/// The same with arguments of the types that the function takes.
fn fitting() -> impl Strategy<Value = String> {
    let functions: Vec<&'static Function> = LIBRARY.all().collect();
    let texts = vec![
        "\"\"",
        "\"a\"",
        "\"a,b\"",
        "\"é\\xff\"",
        "\"(a|b)*?\"",
        "\"{}\"",
        "\"1.2\"",
        "\"%s\"",
        "\"2006-01\"",
        "\"1h\"",
    ];
    let ints = vec![
        "0",
        "1",
        "-1",
        "7",
        "1000",
        "-9223372036854775808",
        "9223372036854775807",
        "2147483648",
    ];
    let of = move |kind: Type| -> BoxedStrategy<String> {
        let all = |values: Vec<&'static str>| prop::sample::select(values).prop_map(str::to_owned).boxed();
        match kind {
            Type::Any => argument().boxed(),
            Type::Text => all(texts.clone()),
            Type::Int => all(ints.clone()),
            Type::Float => all(vec!["0.0", "1.5", "-1e300"]),
            Type::Bool => all(vec!["true", "false"]),
            Type::Map => all(vec![
                "nil",
                "$d",
                "(dict)",
                "(dict \"a\" 1)",
                "(dict \"a\" (dict \"b\" $d))",
            ]),
            Type::Time => all(vec!["(now)", "(toDate \"2006\" \"9999\")"]),
        }
    };
    prop::sample::select(functions).prop_flat_map(move |function| {
        let more = function.more.map_or(0, |_| 2);
        let kinds = function
            .takes
            .iter()
            .copied()
            .chain(std::iter::repeat_n(function.more.unwrap_or(Type::Any), more));
        let arguments: Vec<_> = kinds.map(&of).collect();
        arguments.prop_map(move |arguments| format!("{} {}", function.name, arguments.join(" ")))
    })
}

/// What calls are rendered in: with a map that holds itself, and lists in lists.
fn template(calls: &[String]) -> String {
    let mut text =
        "{{ $x := 1 }}{{ $d := dict \"a\" 1 }}{{ $l := list $d 1 }}{{ $_ := set $d \"self\" $l }}".to_owned();
    for call in calls {
        text += &[
            "{{ $x = ",
            call,
            " }}{{ $x | print }}{{ range $k, $v := $l }}{{ $v | len }}{{ end }}",
        ]
        .concat();
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn calls_with_any_arguments_end(calls in prop::collection::vec(call(), 1..3)) {
        let _ = rendered(&template(&calls));
        for call in &calls {
            let _ = rendered(&format!("{{{{ {call} }}}}"));
        }
    }

    #[test]
    fn calls_with_arguments_that_fit_end(call in fitting()) {
        let _ = rendered(&template(&[call]));
    }

    #[test]
    fn any_text_ends(text in "(\\{\\{-? ?(if|else|end|range|with|define \"a\"|template \"a\"|block \"a\"|break|\\$x :=|\\.|1|\"|`|'|\\(|\\)|\\||/\\*|len|\\PC){0,4} ?-?\\}\\}|\\PC|\n){0,8}") {
        let _ = rendered(&text);
    }
}

#[test]
fn what_would_never_end_is_cut_off() {
    let forever = [
        ("{{ range 1000000000000 }}{{ end }}", "steps"),
        ("{{ range until 1000000000 }}x{{ end }}", "elements"),
        ("{{ repeat 1000000000 \"x\" }}", "MiB"),
        ("{{ indent 1000000000 \"x\" }}", "MiB"),
        ("{{ printf \"%1000000000d\" 1 }}", "MiB"),
        ("{{ printf \"%.1000000000f\" 1.0 }}", "MiB"),
        ("{{ seq 1000000000 }}", "elements"),
        ("{{ randAlphaNum 1000000000 }}", "MiB"),
        (
            "{{ range 100000 }}0123456789012345678901234567890123456789{{ end }}",
            "MiB",
        ),
        (
            "{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}",
            "deep",
        ),
        (
            "{{ define \"a\" }}x{{ template \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}",
            "deep",
        ),
        (
            "{{ $l := list 1 }}{{ range 60 }}{{ $l = list $l $l }}{{ end }}{{ $l }}",
            "MiB",
        ),
        (
            "{{ $l := list 1 }}{{ range 60 }}{{ $l = list $l $l }}{{ end }}{{ deepEqual $l (deepCopy $l) }}",
            "elements",
        ),
        (
            "{{ $l := list }}{{ range 60 }}{{ $l = list $l $l }}{{ end }}{{ $m := list }}{{ range 60 }}{{ $m = list $m $m }}{{ end }}{{ eq true (deepEqual $l $m) }}",
            "steps",
        ),
        (
            "{{ $l := list 1 }}{{ range 200 }}{{ $l = list $l }}{{ end }}{{ $l }}",
            "deep",
        ),
        ("{{ $d := dict }}{{ $_ := set $d \"a\" $d }}{{ $d }}", "deep"),
        ("{{ $d := dict }}{{ $_ := set $d \"a\" $d }}{{ $d | toJson }}", "deep"),
        ("{{ $d := dict }}{{ $_ := set $d \"a\" $d }}{{ deepCopy $d }}", "deep"),
        (
            "{{ $d := dict }}{{ $_ := set $d \"a\" $d }}{{ $e := dict }}{{ $_ := set $e \"a\" $e }}{{ merge $d $e }}",
            "deep",
        ),
        (
            "{{ $s := \"xxxxxxxxxxxxxxxx\" }}{{ range 30 }}{{ $s = print $s $s }}{{ end }}",
            "MiB",
        ),
        (
            "{{ $s := repeat 3000000 \"x\" }}{{ range 1000 }}{{ $_ := upper $s }}{{ end }}",
            "MiB",
        ),
        (
            "{{ $s := repeat 3000000 \"x\" }}{{ range 1000 }}{{ $_ := contains \"y\" $s }}{{ end }}",
            "steps",
        ),
        (
            "{{ $s := repeat 300000 \"x\" }}{{ range 1000 }}{{ $_ := regexMatch \"(x+x+)+y\" $s }}{{ end }}",
            "steps",
        ),
        (
            "{{ $s := repeat 1000000 \"x\" }}{{ len (replace \"x\" \"0123456789\" $s) }}",
            "MiB",
        ),
        (
            "{{ $s := repeat 1000000 \"x,\" }}{{ len (splitList \",\" $s) }}",
            "elements",
        ),
        (
            "{{ $s := repeat 1000000 \"[],\" }}{{ fromJson (printf \"[%s1]\" $s) }}",
            "elements",
        ),
        (
            "{{ regexMatch \"((a{100}){100}){100}\" \"a\" | not }}{{ mustRegexMatch \"((a{100}){100}){100}\" \"a\" }}",
            "regexp",
        ),
    ];
    for (text, bound) in forever {
        let error = rendered(text).map(|bytes| bytes.len()).expect_err(text);
        assert!(error.message.contains(bound), "{text}: {error}");
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = [
        format!("{}1{}", "{{ if true }}".repeat(1000), "{{ end }}".repeat(1000)),
        format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000)),
        format!("{}{{{{ end }}}}", "{{ if 0 }}{{ else if 1 }}") + &"{{ if 0 }}{{ else if 1 }}".repeat(500),
        format!("{{{{ if 0 }}}}{}{{{{ end }}}}", "{{ else if 0 }}".repeat(500)),
    ];
    for text in deep {
        assert!(rendered(&text).is_err());
    }
    // As deep as is allowed, with all that takes stack.
    let parens = format!("{}1{}", "(".repeat(90), ")".repeat(90));
    let text = format!(
        "{{{{ define \"a\" }}}}{{{{ {parens} }}}}{{{{ template \"a\" }}}}{{{{ end }}}}{{{{ template \"a\" }}}}"
    );
    assert!(rendered(&text).is_err());
}

#[test]
fn lists_deeper_than_the_stack_are_dropped() {
    let text = "{{ $l := list 1 }}{{ range 45000 }}{{ $l = list $l }}{{ end }}{{ len $l }}";
    assert_eq!(rendered(text).as_deref(), Ok(&b"1"[..]));
    let text = "{{ $l := list 1 }}{{ $d := dict }}{{ range 12000 }}{{ $d = dict \"a\" $d }}{{ $l = list $l $d }}{{ $_ := set $d \"b\" $l }}{{ end }}x";
    assert_eq!(rendered(text).as_deref(), Ok(&b"x"[..]));
}

// A debug build panicked.
#[test]
fn steps_that_are_further_apart_than_numbers_go_are_counted() {
    let text = "{{ untilStep -9223372036854775808 9223372036854775807 9223372036854775807 }}";
    let expected = "[-9223372036854775808 -1 9223372036854775806]";
    assert_eq!(rendered(text).unwrap(), expected.as_bytes());
}
