//! Proofs and replays, attempt by attempt.

use std::time::Duration;

use serde_json::{Value, json};
use wakeful_wire::{Timestamp, host::Denial};

use super::{
    HttpAddress, PROOF_MAX, Proof, ProofPolicy, ProofTarget, ReplayBounds, ReplayCache,
    testing::{Client, START, b64, claims},
    verify,
};

const TOKEN: &str = "the access token";

fn address() -> HttpAddress {
    HttpAddress::parse("https://w.example/api/host/e1/shell").unwrap()
}

fn check_at(proof: &str, now: Timestamp) -> Result<Proof, Denial> {
    let address = address();
    let target =
        ProofTarget { method: "GET", address: &address, access_token: Some(TOKEN), nonces: None };
    verify(proof, &target, &ProofPolicy::default(), now)
}

fn check(proof: &str) -> Result<Proof, Denial> {
    check_at(proof, START)
}

fn good_claims() -> Value {
    claims("one", "GET", &address(), Some(TOKEN), START)
}

fn with(mut value: Value, member: &str, new: Value) -> Value {
    value[member] = new;
    value
}

fn without(mut value: Value, member: &str) -> Value {
    value.as_object_mut().unwrap().remove(member);
    value
}

#[test]
fn a_proof_of_either_algorithm_holds() {
    for client in [Client::p256(), Client::ed25519(1)] {
        let first = check(&client.proof(&good_claims())).unwrap();
        let second = check(&client.proof(&with(good_claims(), "jti", json!("two")))).unwrap();
        assert_eq!(first.key(), second.key());
        assert_ne!(first.id(), second.id());
    }
    let one = check(&Client::ed25519(1).proof(&good_claims())).unwrap();
    let two = check(&Client::ed25519(2).proof(&good_claims())).unwrap();
    assert_ne!(one.key(), two.key());
    assert_ne!(one.id(), two.id(), "another client may use the same jti");
}

#[test]
fn the_proof_of_the_standard_holds() {
    // RFC 9449 figure 2: a token request at 1562262616.
    let proof = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg";
    let address = HttpAddress::parse("https://server.example.com/token").unwrap();
    let target =
        ProofTarget { method: "POST", address: &address, access_token: None, nonces: None };
    let now = Timestamp(1_562_262_616_000);
    let proof = verify(proof, &target, &ProofPolicy::default(), now).unwrap();
    assert_eq!(proof.key().to_string(), "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
}

#[test]
fn every_way_to_be_wrong_has_its_own_answer() {
    let p256 = Client::p256();
    let ed = Client::ed25519(1);
    let header = ed.header();
    let sign = |claims: &Value| ed.proof(claims);
    let head = |header: &Value| ed.sign(header, &good_claims());
    let private = with(header.clone(), "jwk", with(ed.jwk(), "d", json!("c2VjcmV0")));
    let secret = with(header.clone(), "jwk", json!({"kty": "oct", "k": "c2VjcmV0"}));
    let foreign_key = with(header.clone(), "jwk", Client::ed25519(2).jwk());
    let good = sign(&good_claims());
    let unsigned = format!("{}.", good.rsplit_once('.').unwrap().0);
    let none = with(header.clone(), "alg", json!("none"));
    let none = format!(
        "{}.{}.",
        b64(none.to_string().as_bytes()),
        b64(good_claims().to_string().as_bytes())
    );
    let twice = ed.sign_texts(
        &header.to_string(),
        r#"{"jti":"a","jti":"b","htm":"GET","htu":"https://w.example/","iat":1}"#,
    );
    let array = ed.sign_texts(
        &header.to_string(),
        &format!(r#"["one","GET","{}",{},null,null]"#, address(), START.0 / 1_000),
    );
    let table: Vec<(&str, String, Denial)> = vec![
        ("empty", String::new(), Denial::ProofMissing),
        ("one byte over", "a".repeat(PROOF_MAX + 1), Denial::ProofTooLong),
        ("no dots", "abc".into(), Denial::ProofMalformed),
        ("one dot", "abc.def".into(), Denial::ProofMalformed),
        ("four parts", format!("{good}.x"), Denial::ProofMalformed),
        ("not base64url", "!.!.!".into(), Denial::ProofMalformed),
        ("padding", good.replacen('.', "=.", 1), Denial::ProofMalformed),
        ("header is no JSON", ed.sign_texts("no", "{}"), Denial::ProofMalformed),
        ("no typ", head(&without(header.clone(), "typ")), Denial::ProofType),
        ("another typ", head(&with(header.clone(), "typ", json!("JWT"))), Denial::ProofType),
        ("alg none", none, Denial::ProofAlgorithm),
        ("alg HS256", head(&with(header.clone(), "alg", json!("HS256"))), Denial::ProofAlgorithm),
        ("alg RS256", head(&with(header.clone(), "alg", json!("RS256"))), Denial::ProofAlgorithm),
        ("no alg", head(&without(header.clone(), "alg")), Denial::ProofAlgorithm),
        ("crit", head(&with(header.clone(), "crit", json!(["exp"]))), Denial::ProofMalformed),
        ("private key", head(&private), Denial::ProofPrivateKey),
        ("secret key", head(&secret), Denial::ProofPrivateKey),
        ("no key", head(&without(header.clone(), "jwk")), Denial::ProofKey),
        ("key of another algorithm", head(&with(header, "jwk", p256.jwk())), Denial::ProofKey),
        ("another's key", head(&foreign_key), Denial::ProofSignature),
        ("no signature", unsigned, Denial::ProofSignature),
        ("claims are no object", array, Denial::ProofMalformed),
        ("a claim twice", twice, Denial::ProofMalformed),
        ("no jti", sign(&without(good_claims(), "jti")), Denial::ProofMalformed),
        ("empty jti", sign(&with(good_claims(), "jti", json!(""))), Denial::ProofMalformed),
        (
            "huge jti",
            sign(&with(good_claims(), "jti", json!("j".repeat(257)))),
            Denial::ProofMalformed,
        ),
        ("no htm", sign(&without(good_claims(), "htm")), Denial::ProofMalformed),
        ("another method", sign(&with(good_claims(), "htm", json!("POST"))), Denial::ProofMethod),
        (
            "method in lower case",
            sign(&with(good_claims(), "htm", json!("get"))),
            Denial::ProofMethod,
        ),
        ("iat as text", sign(&with(good_claims(), "iat", json!("1"))), Denial::ProofMalformed),
        ("iat before time", sign(&with(good_claims(), "iat", json!(-1))), Denial::ProofMalformed),
        ("iat after time", sign(&with(good_claims(), "iat", json!(1e300))), Denial::ProofMalformed),
        ("no ath", sign(&without(good_claims(), "ath")), Denial::ProofToken),
        (
            "ath of another token",
            sign(&claims("one", "GET", &address(), Some("another"), START)),
            Denial::ProofToken,
        ),
    ];
    for (what, proof, denial) in table {
        assert_eq!(check(&proof), Err(denial), "{what}");
    }
}

#[test]
fn the_address_is_compared_in_normal_form() {
    let client = Client::ed25519(1);
    let answer = |htu: &str| check(&client.proof(&with(good_claims(), "htu", json!(htu))));
    for same in [
        "https://w.example/api/host/e1/shell?after=1#x",
        "HTTPS://W.EXAMPLE:443/api/host/e1/./shell",
        "https://w.example/api/ho%73t/e1/shell",
    ] {
        assert!(answer(same).is_ok(), "{same}");
    }
    for other in [
        "http://w.example/api/host/e1/shell",
        "https://w.example:8443/api/host/e1/shell",
        "https://w.example/api/host/e2/shell",
        "https://w.example/api/host/e1/shell/",
        "https://w.example/api/host/e1/Shell",
        "https://evil.example/api/host/e1/shell",
        "/api/host/e1/shell",
        "",
    ] {
        assert_eq!(answer(other), Err(Denial::ProofUrl), "{other}");
    }
}

#[test]
fn clocks_may_differ_by_so_much_and_no_more() {
    let proof = Client::ed25519(1).proof(&good_claims());
    let table = [
        (-60_001, Err(Denial::ProofEarly)),
        (-60_000, Ok(())),
        (0, Ok(())),
        (120_000, Ok(())),
        (120_001, Err(Denial::ProofLate)),
    ];
    for (offset, expected) in table {
        let now = Timestamp(START.0.checked_add_signed(offset).unwrap());
        assert_eq!(check_at(&proof, now).map(|_| ()), expected, "host ahead by {offset} ms");
    }
    let fraction = with(good_claims(), "iat", json!(START.0 as f64 / 1_000.0 + 0.25));
    assert!(check(&Client::ed25519(1).proof(&fraction)).is_ok());
}

#[test]
fn a_nonce_is_needed_only_where_the_host_asks_for_one() {
    let client = Client::ed25519(1);
    let address = address();
    let answer = |claims: &Value, nonces| {
        let target = ProofTarget { method: "GET", address: &address, access_token: None, nonces };
        verify(&client.proof(claims), &target, &ProofPolicy::default(), START).map(|_| ())
    };
    let nonced = with(good_claims(), "nonce", json!("n2"));
    assert_eq!(answer(&nonced, None), Ok(()));
    assert_eq!(answer(&nonced, Some(&["n1", "n2"])), Ok(()));
    assert_eq!(answer(&nonced, Some(&["n1"])), Err(Denial::NonceRequired));
    assert_eq!(answer(&good_claims(), Some(&["n1"])), Err(Denial::NonceRequired));
}

fn proof_of(client: &Client, jti: &str, made_at: Timestamp) -> Proof {
    let claims = claims(jti, "GET", &address(), Some(TOKEN), made_at);
    check_at(&client.proof(&claims), made_at).unwrap()
}

#[test]
fn a_proof_is_taken_once_for_as_long_as_it_could_be_shown() {
    let client = Client::ed25519(1);
    let mut cache = ReplayCache::default();
    let proof = proof_of(&client, "one", START);
    assert_eq!(cache.take(&proof, START), Ok(()));
    let end = START.after(Duration::from_secs(120));
    assert_eq!(cache.take(&proof, end), Err(Denial::ProofReplayed));
    assert_eq!(cache.take(&proof_of(&Client::ed25519(2), "one", START), end), Ok(()));
    assert_eq!(cache.take(&proof_of(&client, "two", START), end), Ok(()));
    assert_eq!(cache.len(), 3);
    // Forgotten once verification refuses it; and a clock that is set back does not revive it.
    let later = end.after(Duration::from_millis(1));
    assert_eq!(cache.take(&proof_of(&client, "three", later), later), Ok(()));
    assert_eq!(cache.len(), 1);
    assert_eq!(cache.take(&proof, START), Err(Denial::ProofLate));
}

#[test]
fn a_full_cache_refuses_and_forgets_nothing_that_lives() {
    let client = Client::ed25519(1);
    let other = Client::ed25519(2);
    let mut cache = ReplayCache::new(ReplayBounds { per_key: 2, total: 3 });
    let first = proof_of(&client, "1", START);
    assert_eq!(cache.take(&first, START), Ok(()));
    assert_eq!(cache.take(&proof_of(&client, "2", START), START), Ok(()));
    let third = proof_of(&client, "3", START);
    assert_eq!(cache.take(&third, START), Err(Denial::ProofsFull), "the key's own bound");
    assert_eq!(cache.take(&proof_of(&other, "1", START), START), Ok(()));
    let fourth = proof_of(&Client::ed25519(3), "1", START);
    assert_eq!(cache.take(&fourth, START), Err(Denial::ProofsFull), "the bound of all");
    assert_eq!(cache.take(&first, START), Err(Denial::ProofReplayed));
    let later = START.after(Duration::from_secs(121));
    assert_eq!(cache.take(&proof_of(&client, "4", later), later), Ok(()));
}
