//! Quantities: valid texts, and equal amounts.

use kcm_api::{Quantity, ResourceList, ResourceQuantity};
use proptest::prelude::*;

fn quantity(text: &str) -> Quantity {
    text.parse().expect("the case must be a quantity")
}

#[test]
fn forms_of_one_amount_are_equal() {
    for forms in [
        &["1", "1.0", "1.", "01", "+1", "1000m", "1000000u", "1000000000n", "1e0", "1E0", "0.001k", "10e-1"][..],
        &["0", "-0", "0m", "0Gi", "0.000", ".0", "0e9"],
        &["0.5", ".5", "500m", "5e-1", "0.5000"],
        &["1k", "1000", "1e3", "1E+3", "0.001M"],
        &["1Ki", "1024", "1.024k", "0.0009765625Mi"],
        &["1Gi", "1024Mi", "1048576Ki", "1073741824"],
        &["1.5Gi", "1536Mi", "1610612736"],
        &["1E", "1000P", "1000000T", "1000000000G", "1e18"],
        &["1Ei", "1024Pi", "1048576Ti", "1152921504606846976"],
        &["-1.5", "-1500m", "-15e-1"],
        &["123456789012345678901234567890", "123456789012345678901234567890.0"],
    ] {
        for form in forms {
            assert_eq!(quantity(form), quantity(forms[0]), "{form}");
            assert_eq!(quantity(form).to_string(), quantity(forms[0]).to_string(), "{form}");
        }
    }
}

#[test]
fn amounts_are_ordered_by_value() {
    let ascending = [
        "-1Ei", "-1k", "-1", "-1m", "-1n", "0", "1n", "1u", "1m", "0.1", "999m", "1", "1.5", "2", "1k", "1Ki", "1M",
        "1Mi", "1G", "1Gi", "1T", "1Ti", "1P", "1Pi", "1E", "1Ei", "1e100",
    ];
    for (at, one) in ascending.iter().enumerate() {
        for (other_at, other) in ascending.iter().enumerate() {
            assert_eq!(quantity(one).cmp(&quantity(other)), at.cmp(&other_at), "{one} {other}");
        }
    }
}

#[test]
fn what_is_less_than_a_billionth_is_rounded_away_from_zero() {
    for (text, rounded) in [
        ("0.1n", "1n"),
        ("1e-100", "1n"),
        ("-0.1n", "-1n"),
        ("1.0000000001", "1.000000001"),
        ("0.9999999999", "1"),
        ("0.00000000000001Gi", "10738n"),
        ("0.0000000000", "0"),
    ] {
        assert_eq!(quantity(text), quantity(rounded), "{text}");
    }
}

#[test]
fn only_binary_amounts_are_capped() {
    let most = "9223372036854775807";
    for text in ["8Ei", "1000Ei", "99999999999999999999Ki", "7.9999999999999999999Ei"] {
        assert_eq!(quantity(text), quantity(most), "{text}");
        assert_eq!(quantity(&format!("-{text}")), quantity(&format!("-{most}")), "-{text}");
    }
    assert!(quantity("7.5Ei") < quantity(most));
    assert!(quantity("10E") > quantity(most));
    assert!(quantity("1e30") > quantity("10E"));
}

#[test]
fn a_value_is_a_whole_number_within_64_bits() {
    for (text, value) in [
        ("0", 0),
        ("64Ki", 65_536),
        ("1.5M", 1_500_000),
        ("1e3", 1000),
        ("+2E", 2_000_000_000_000_000_000),
        ("1.5", 2),
        ("100m", 1),
        ("-100m", -1),
        (".5k", 500),
        ("-1Ki", -1024),
        ("9Ei", i64::MAX),
        ("9223372036854775807", i64::MAX),
        ("9223372036854775808", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("10E", i64::MAX),
        ("1e2147483647", i64::MAX),
        ("-1e2147483647", i64::MIN),
    ] {
        assert_eq!(quantity(text).value(), value, "{text}");
    }
}

#[test]
fn what_is_no_quantity_is_refused() {
    for text in [
        "",
        " ",
        "-",
        "+",
        ".",
        "m",
        "Ki",
        "1 ",
        " 1",
        "1 Gi",
        "1K",
        "1ki",
        "1kI",
        "1mi",
        "1GiB",
        "1b",
        "1e",
        "1e1.5",
        "1e+",
        "1Ee3",
        "1Gi3",
        "1,5",
        "1.2.3",
        "--1",
        "+-1",
        "0x10",
        "NaN",
        "inf",
        "1e99999999999",
        "١",
    ] {
        assert!(text.parse::<Quantity>().is_err(), "{text:?}");
    }
    assert_eq!("1K".parse::<Quantity>().unwrap_err().to_string(), "\"1K\" is not a quantity");
}

/// Suffix and its value in billionths.
const SUFFIXES: [(&str, i128); 16] = [
    ("n", 1),
    ("u", 1_000),
    ("m", 1_000_000),
    ("", 1_000_000_000),
    ("k", 1_000_000_000_000),
    ("M", 1_000_000_000_000_000),
    ("G", 1_000_000_000_000_000_000),
    ("T", 1_000_000_000_000_000_000_000),
    ("e3", 1_000_000_000_000),
    ("E+6", 1_000_000_000_000_000),
    ("e-3", 1_000_000),
    ("e-9", 1),
    ("Ki", 1_000_000_000 << 10),
    ("Mi", 1_000_000_000 << 20),
    ("Gi", 1_000_000_000 << 30),
    ("Ti", 1_000_000_000 << 40),
];

/// A quantity, and its amount in billionths as integers of 128 bits count it.
fn amount() -> impl Strategy<Value = (String, i128)> {
    (-999_999_i128..=999_999, 0_usize..4, prop::sample::select(&SUFFIXES)).prop_map(
        |(number, places, (suffix, factor))| {
            let point = 10_i128.pow(u32::try_from(places).expect("must be small"));
            let sign = if number < 0 { "-" } else { "" };
            let (whole, fraction) = (number.abs() / point, number.abs() % point);
            let dot = if places > 0 { format!(".{fraction:0places$}") } else { String::new() };
            let scaled = number.abs() * factor;
            let rounded = (scaled + point - 1) / point * number.signum();
            (format!("{sign}{whole}{dot}{suffix}"), rounded)
        },
    )
}

proptest! {
    #[test]
    fn compares_as_integers_do((one, amount) in amount(), (other, other_amount) in amount()) {
        prop_assert_eq!(quantity(&one).cmp(&quantity(&other)), amount.cmp(&other_amount), "{} {}", one, other);
    }

    #[test]
    fn is_the_amount_that_integers_make_it((text, amount) in amount()) {
        prop_assert_eq!(quantity(&text), quantity(&format!("{amount}n")), "{}", text);
    }

    #[test]
    fn what_is_displayed_is_the_same_quantity((text, _) in amount()) {
        let shown = quantity(&text).to_string();
        prop_assert_eq!(quantity(&shown), quantity(&text));
        prop_assert_eq!(quantity(&shown).to_string(), shown);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[-+0-9.eEinumkKMGTP]{0,12}|.{0,6}") {
        drop(text.parse::<Quantity>());
    }
}

#[test]
fn a_sum_is_written_as_upstream_writes_it() {
    for (summands, expected) in [
        (&["0"][..], "0"),
        (&["100m", "900m"], "1"),
        (&["1500m"], "1500m"),
        (&["512Mi", "512Mi"], "1Gi"),
        (&["1Gi", "500M"], "1573741824"),
        (&["500M", "1Gi"], "1573741824"),
        (&["0", "1Mi"], "1Mi"),
        (&["0.3Gi"], "322122547200m"),
        (&["0.5Ki"], "512"),
        (&["2000"], "2k"),
        (&["1e3", "1"], "1001"),
        (&["1e3", "1e3"], "2e3"),
        (&["3E"], "3E"),
        (&["1Ei"], "1Ei"),
        (&["1n"], "1n"),
        (&["-1", "500m"], "-500m"),
        (&["1e99"], "10e27"),
    ] {
        let mut sum = ResourceQuantity::default();
        for summand in summands {
            sum += summand.parse().expect("the case must be a quantity");
        }
        assert_eq!(sum.to_string(), expected, "{summands:?}");
    }
}

#[test]
fn quantities_with_a_notation_are_compared_by_value() {
    let quantity = |text: &str| text.parse::<ResourceQuantity>().expect("the case must be a quantity");
    assert_eq!(quantity("1k"), quantity("1000"));
    assert!(quantity("1Ki") > quantity("1k"));
    assert_eq!(quantity("10.1").round_up(), ResourceQuantity::whole(11));
    assert_eq!(quantity("-10.1").round_up(), ResourceQuantity::whole(-10));
    assert_eq!(quantity("2Gi").round_up().to_string(), "2Gi");
    let mut rest = quantity("2");
    rest -= quantity("2");
    assert!(rest.is_zero() && !rest.is_positive());
    assert!("1x".parse::<ResourceQuantity>().is_err());
}

#[test]
fn a_resource_list_adds_up_by_name() {
    let list = |json: &str| serde_json::from_str::<ResourceList>(json).expect("the case must be a list");
    let mut sum = list(r#"{"memory":"1Gi","cpu":"1"}"#);
    sum.add(&list(r#"{"cpu":"500m","pods":"2","bad":"x","none":null}"#));
    assert_eq!(serde_json::to_string(&sum).unwrap(), r#"{"cpu":"1500m","memory":"1Gi","none":"0","pods":"2"}"#);
    sum.raise_to(&list(r#"{"cpu":"1","memory":"2Gi"}"#));
    assert_eq!(serde_json::to_string(&sum).unwrap(), r#"{"cpu":"1500m","memory":"2Gi","none":"0","pods":"2"}"#);
    assert_eq!(list("null"), ResourceList::default());
    assert!(serde_json::from_str::<ResourceList>("[]").is_err());
}
