//! Attempts to get in, and their answers, against the whole authority.

use std::{cell::Cell, time::Duration};

use serde_json::{Value, json};
use wakeful_wire::host::{Denial, Scope, Scopes, SessionMethod, TokenRequest, grant::Grant};

use super::{
    Authority, AuthorityOptions, CredentialError, GrantGate,
    bench::{Bench, open, pairing},
    testing::{Client, TestClock, b64, env, grant, scopes, session_id, user},
};

const HOUR: Duration = Duration::from_secs(3_600);

fn denied<T: std::fmt::Debug>(answer: Result<T, CredentialError>) -> Denial {
    answer.unwrap_err().denial().unwrap()
}

#[tokio::test]
async fn a_grant_opens_an_hour_for_its_subject_and_key() {
    let bench = Bench::open().await;
    for client in [Client::p256(), Client::ed25519(1)] {
        let answer = bench.enter(&client).await;
        assert_eq!((answer.token_type.as_str(), answer.expires_in), ("DPoP", 3_600));
        assert_eq!((&answer.refresh_token, &answer.scope), (&None, &scopes()));
        let session = bench.get(&client, &answer.access_token).unwrap();
        assert_eq!((session.id, session.method), (answer.session, SessionMethod::Grant));
        assert_eq!(session.subject, user("alice"));
        assert_eq!(session.allows(Scope::Read), Ok(()));
        assert_eq!(session.allows(Scope::Sessions), Err(Denial::ScopeMissing));
    }
}

#[tokio::test]
async fn requests_and_their_answers() {
    let bench = Bench::open().await;
    let client = Client::p256();
    let thief = Client::ed25519(9);
    let token = bench.enter(&client).await.access_token;
    let refresh = bench.pair(&client).await.refresh_token.unwrap();
    let bearer = format!("Bearer {token}");
    let dpop = format!("DPoP {token}");
    let fresh = || bench.claims("GET", "/shell", Some(&token));
    let good = || client.proof(&fresh());
    let with = |member: &str, value: Value| {
        let mut claims = fresh();
        claims[member] = value;
        client.proof(&claims)
    };
    let now = bench.clock.now().0 / 1_000;
    let mut private = client.header();
    private["jwk"]["d"] = json!("c2VjcmV0");
    let mut symmetric = client.header();
    symmetric["alg"] = json!("HS256");
    let none = format!(
        "{}.{}.",
        b64(br#"{"typ":"dpop+jwt","alg":"none"}"#),
        b64(fresh().to_string().as_bytes())
    );
    let replayed = good();
    assert!(bench.show(Some(&dpop), Some(&replayed)).is_ok());
    let huge = "a".repeat(100_000);
    let forged = format!("DPoP {}x{}", &token[..20], &token[21..]);
    let table: Vec<(&str, Option<String>, Option<String>, Denial)> = vec![
        ("nothing", None, None, Denial::TokenMissing),
        ("no token", None, Some(good()), Denial::TokenMissing),
        ("an empty token", Some("DPoP ".into()), Some(good()), Denial::TokenMissing),
        ("as a bearer token", Some(bearer), Some(good()), Denial::TokenScheme),
        ("no token of ours", Some("DPoP wk_abc".into()), Some(good()), Denial::TokenMalformed),
        ("a huge token", Some(format!("DPoP {huge}")), Some(good()), Denial::TokenMalformed),
        ("a changed token", Some(forged), Some(good()), Denial::TokenSignature),
        ("a refresh token", Some(format!("DPoP {refresh}")), Some(good()), Denial::TokenKind),
        ("no proof", Some(dpop.clone()), None, Denial::ProofMissing),
        ("a huge proof", Some(dpop.clone()), Some(huge), Denial::ProofTooLong),
        ("a replayed proof", Some(dpop.clone()), Some(replayed), Denial::ProofReplayed),
        ("another's key", Some(dpop.clone()), Some(thief.proof(&fresh())), Denial::TokenKey),
        (
            "another method",
            Some(dpop.clone()),
            Some(with("htm", json!("PUT"))),
            Denial::ProofMethod,
        ),
        (
            "another address",
            Some(dpop.clone()),
            Some(with("htu", json!("https://w.example/api/host/e2/shell"))),
            Denial::ProofUrl,
        ),
        (
            "a client ahead",
            Some(dpop.clone()),
            Some(with("iat", json!(now + 61))),
            Denial::ProofEarly,
        ),
        (
            "a client behind",
            Some(dpop.clone()),
            Some(with("iat", json!(now - 121))),
            Denial::ProofLate,
        ),
        (
            "another token's hash",
            Some(dpop.clone()),
            Some(with("ath", json!("x"))),
            Denial::ProofToken,
        ),
        (
            "a private key",
            Some(dpop.clone()),
            Some(client.sign(&private, &fresh())),
            Denial::ProofPrivateKey,
        ),
        ("alg none", Some(dpop.clone()), Some(none), Denial::ProofAlgorithm),
        (
            "alg HS256",
            Some(dpop.clone()),
            Some(client.sign(&symmetric, &fresh())),
            Denial::ProofAlgorithm,
        ),
    ];
    for (what, authorization, proof, denial) in table {
        let answer = bench.show(authorization.as_deref(), proof.as_deref());
        assert_eq!(answer.err(), Some(denial), "{what}");
    }
    // After all of it the right client still gets in, in either spelling of the scheme.
    assert!(bench.get(&client, &token).is_ok());
    let lower = dpop.replace("DPoP", "dpop");
    assert!(bench.show(Some(&lower), Some(&good())).is_ok());
}

#[tokio::test]
async fn a_token_ends_with_its_hour_and_with_its_session() {
    let bench = Bench::open().await;
    let client = Client::p256();
    let first = bench.enter(&client).await;
    let second = bench.enter(&client).await;
    assert!(bench.authority.sessions().revoke(first.session).await.unwrap());
    assert_eq!(bench.get(&client, &first.access_token).err(), Some(Denial::SessionRevoked));
    assert!(bench.get(&client, &second.access_token).is_ok());
    bench.clock.advance(HOUR);
    assert_eq!(bench.get(&client, &second.access_token).err(), Some(Denial::TokenExpired));
}

#[tokio::test]
async fn grants_and_their_answers() {
    let bench = Bench::open().await;
    let client = Client::p256();
    let ask = async |grant: String| {
        let request = TokenRequest::Grant { grant, label: Some("x".repeat(200)) };
        denied(bench.ask(&request, &bench.token_proof(&client), None).await)
    };
    let used = bench.grant();
    let request = TokenRequest::Grant { grant: used.clone(), label: None };
    bench.ask(&request, &bench.token_proof(&client), None).await.unwrap();
    assert_eq!(ask(used.clone()).await, Denial::GrantUsed);
    let now = bench.clock.now();
    let elsewhere = bench.gate.seal(&grant(100, env(2), now));
    assert_eq!(ask(elsewhere).await, Denial::GrantAudience);
    let early = bench.gate.seal(&grant(101, env(1), now.after(HOUR)));
    assert_eq!(ask(early).await, Denial::GrantEarly);
    let forged = GrantGate::new(env(1), "guess").seal(&grant(102, env(1), now));
    assert_eq!(ask(forged).await, Denial::GrantSignature);
    assert_eq!(ask("g".repeat(100_000)).await, Denial::GrantMalformed);

    // A request whose proof is wrong uses nothing up.
    let kept = bench.grant();
    let request = TokenRequest::Grant { grant: kept.clone(), label: None };
    let elsewhere = client.proof(&bench.claims("POST", "/elsewhere", None));
    assert_eq!(denied(bench.ask(&request, &elsewhere, None).await), Denial::ProofUrl);
    let replayed = bench.token_proof(&client);
    bench.ask(&request, &replayed, None).await.unwrap();
    let another = TokenRequest::Grant { grant: bench.grant(), label: None };
    assert_eq!(denied(bench.ask(&another, &replayed, None).await), Denial::ProofReplayed);

    let late = bench.grant();
    bench.clock.advance(Duration::from_secs(60));
    assert_eq!(ask(late).await, Denial::GrantExpired);
    // A used grant stays used over a restart, even where its end is not reached.
    bench.clock.set(now);
    bench.authority.sessions().close().await;
    let authority = open(&bench.dir, &bench.clock, b"pepper").await;
    let bench = Bench { authority, ..bench };
    let request = TokenRequest::Grant { grant: used, label: None };
    let again = bench.ask(&request, &bench.token_proof(&client), None).await;
    assert_eq!(denied(again), Denial::GrantUsed);
}

#[tokio::test]
async fn one_of_many_exchanges_of_one_grant_wins() {
    let bench = Bench::open().await;
    let client = Client::p256();
    let request = TokenRequest::Grant { grant: bench.grant(), label: None };
    let proofs: Vec<_> = (0..8).map(|_| bench.token_proof(&client)).collect();
    let (a, b, c, d) = tokio::join!(
        bench.ask(&request, &proofs[0], None),
        bench.ask(&request, &proofs[1], None),
        bench.ask(&request, &proofs[2], None),
        bench.ask(&request, &proofs[3], None),
    );
    let answers = [a, b, c, d];
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(bench.authority.sessions().list().len(), 1);
}

#[tokio::test]
async fn a_pairing_code_opens_thirty_days_that_renewal_prolongs() {
    let bench = Bench::open().await;
    let client = Client::ed25519(1);
    let answer = bench.pair(&client).await;
    assert_eq!(answer.expires_in, 3_600);
    let session = bench.get(&client, &answer.access_token).unwrap();
    assert_eq!((session.method, session.label.as_str()), (SessionMethod::Pairing, "phone"));
    assert_eq!(session.expires_at, bench.clock.now().after(30 * 24 * HOUR));

    bench.clock.advance(29 * 24 * HOUR);
    let refresh = TokenRequest::Refresh { refresh_token: answer.refresh_token.unwrap() };
    assert_eq!(bench.get(&client, &answer.access_token).err(), Some(Denial::TokenExpired));
    let thief = Client::ed25519(9);
    let stolen = bench.ask(&refresh, &bench.token_proof(&thief), None).await;
    assert_eq!(denied(stolen), Denial::TokenKey);
    let renewed = bench.ask(&refresh, &bench.token_proof(&client), None).await.unwrap();
    assert_eq!(renewed.session, answer.session);
    let session = bench.get(&client, &renewed.access_token).unwrap();
    assert_eq!(session.expires_at, bench.clock.now().after(30 * 24 * HOUR));

    let as_refresh = TokenRequest::Refresh { refresh_token: renewed.access_token };
    let kind = bench.ask(&as_refresh, &bench.token_proof(&client), None).await;
    assert_eq!(denied(kind), Denial::TokenKind);
    bench.authority.sessions().revoke(answer.session).await.unwrap();
    let revoked = bench.ask(&refresh, &bench.token_proof(&client), None).await;
    assert_eq!(denied(revoked), Denial::SessionRevoked);
}

#[tokio::test]
async fn pairing_codes_and_their_answers() {
    let bench = Bench::open().await;
    let client = Client::ed25519(1);
    let ask = async |code: &str, peer: Option<&str>| {
        denied(bench.ask(&pairing(code), &bench.token_proof(&client), peer).await)
    };
    let code = bench.offer();
    assert_eq!(ask(&code, None).await, Denial::PairingPeer);
    assert_eq!(ask(&code, Some("8.8.8.8")).await, Denial::PairingPeer);
    let bad = bench.ask(&pairing(&code), "x", Some("::1")).await;
    assert_eq!(denied(bad), Denial::ProofMalformed);
    let near = Some("192.168.1.7");
    bench.ask(&pairing(&code), &bench.token_proof(&client), near).await.unwrap();
    assert_eq!(ask(&code, near).await, Denial::PairingWrong);
    let late = bench.offer();
    bench.clock.advance(Duration::from_secs(300));
    assert_eq!(ask(&late, near).await, Denial::PairingExpired);
    let guessed = bench.offer();
    for _ in 0..9 {
        assert_eq!(ask("2222-2222", near).await, Denial::PairingWrong);
    }
    assert_eq!(ask("2222-2222", near).await, Denial::PairingExhausted);
    assert_eq!(ask(&guessed, near).await, Denial::PairingExhausted);
}

#[tokio::test]
async fn tickets_and_their_answers() {
    let bench = Bench::open().await;
    let client = Client::p256();
    let answer = bench.enter(&client).await;
    let token = answer.access_token.as_str();
    let open = async |ticket: &str| bench.authority.open_socket(ticket).await.err();

    let used = bench.ticket(&client, token).unwrap();
    assert_eq!(open(&used).await, None);
    assert_eq!(open(&used).await, Some(Denial::TicketUsed));
    assert_eq!(open(&"t".repeat(100_000)).await, Some(Denial::TicketMalformed));
    assert_eq!(open(token).await, Some(Denial::TicketMalformed));
    let late = bench.ticket(&client, token).unwrap();
    bench.clock.advance(Duration::from_secs(60));
    assert_eq!(open(&late).await, Some(Denial::TicketExpired));

    // Who may not read gets none.
    let blind = Grant {
        scopes: Scopes::from_iter([Scope::Write]),
        ..grant(200, env(1), bench.clock.now())
    };
    let request = TokenRequest::Grant { grant: bench.gate.seal(&blind), label: None };
    let blind = bench.ask(&request, &bench.token_proof(&client), None).await.unwrap();
    assert_eq!(bench.ticket(&client, &blind.access_token).err(), Some(Denial::ScopeMissing));

    // Good itself, but its session is not: expired, then revoked.
    bench.clock.advance(HOUR - Duration::from_secs(61));
    let orphan = bench.ticket(&client, token).unwrap();
    bench.clock.advance(Duration::from_secs(2));
    assert_eq!(open(&orphan).await, Some(Denial::SessionExpired));
    let answer = bench.enter(&client).await;
    let orphan = bench.ticket(&client, &answer.access_token).unwrap();
    bench.authority.sessions().revoke(answer.session).await.unwrap();
    assert_eq!(open(&orphan).await, Some(Denial::SessionRevoked));
}

#[tokio::test]
async fn a_renewed_client_keeps_its_socket_and_its_old_token_ends() {
    let bench = Bench::open().await;
    let client = Client::p256();
    let first = bench.enter(&client).await;
    let socket = bench.connect(&client, &first.access_token).await;
    bench.clock.advance(HOUR - Duration::from_secs(30));
    let second = bench.enter(&client).await;
    assert_eq!(socket.session().id, second.session);
    bench.clock.advance(Duration::from_secs(60));
    bench.authority.sessions().tick();
    assert_eq!(socket.closing(), None);
    assert_eq!(bench.get(&client, &first.access_token).err(), Some(Denial::TokenExpired));
    assert!(bench.get(&client, &second.access_token).is_ok());
}

#[tokio::test]
async fn tokens_outlive_a_restart_but_not_another_key() {
    let bench = Bench::open().await;
    let client = Client::p256();
    let token = bench.enter(&client).await.access_token;
    let ticket = bench.ticket(&client, &token).unwrap();
    bench.authority.sessions().close().await;
    let authority = open(&bench.dir, &bench.clock, b"pepper").await;
    let bench = Bench { authority, ..bench };
    assert!(bench.get(&client, &token).is_ok());
    let forgotten = bench.authority.open_socket(&ticket).await.err();
    assert_eq!(forgotten, Some(Denial::TicketUnknown));
    bench.authority.sessions().close().await;
    let authority = open(&bench.dir, &bench.clock, b"another").await;
    let bench = Bench { authority, ..bench };
    assert_eq!(bench.get(&client, &token).err(), Some(Denial::TokenSignature));
}

#[tokio::test]
async fn a_session_that_is_gone_or_was_rewritten_in_the_file_opens_nothing() {
    for (sql, denial) in [
        ("UPDATE sessions SET label = 'x'", None),
        ("DELETE FROM sessions", Some(Denial::SessionUnknown)),
        ("UPDATE sessions SET scopes = 'read write approve'", Some(Denial::SessionUnknown)),
        ("UPDATE sessions SET subject = 'bob'", Some(Denial::SessionUnknown)),
        ("UPDATE sessions SET method = 'pairing'", Some(Denial::SessionUnknown)),
        (
            "UPDATE sessions SET key_thumbprint = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'",
            Some(Denial::SessionUnknown),
        ),
    ] {
        let bench = Bench::open().await;
        let client = Client::p256();
        let token = bench.enter(&client).await.access_token;
        bench.authority.sessions().close().await;
        let url = format!("sqlite://{}", bench.dir.path().join("sessions.db").display());
        let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
        sqlx::raw_sql(sql).execute(&pool).await.unwrap();
        pool.close().await;
        let authority = open(&bench.dir, &bench.clock, b"pepper").await;
        let bench = Bench { authority, ..bench };
        assert_eq!(bench.get(&client, &token).err(), denial, "{sql}");
    }
}

#[tokio::test]
async fn a_host_of_its_own_takes_no_grants_and_no_policy_without_sense() {
    let dir = tempfile::tempdir().unwrap();
    let clock = TestClock::new();
    let path = dir.path().join("sessions.db");
    let mut options = AuthorityOptions::new(path.clone(), clock.sources());
    options.sessions.granted = Duration::ZERO;
    assert!(Authority::open(options).await.is_err());
    let authority = Authority::open(AuthorityOptions::new(path, clock.sources())).await.unwrap();
    let gate = GrantGate::new(env(1), "secret");
    let drawn = Cell::default();
    let bench = Bench { dir, clock, authority, gate, drawn };
    let request = TokenRequest::Grant { grant: bench.grant(), label: None };
    let answer = bench.ask(&request, &bench.token_proof(&Client::p256()), None).await;
    assert_eq!(denied(answer), Denial::GrantUnsupported);
    assert_eq!(bench.authority.sessions().holding(session_id(1)), Err(Denial::SessionUnknown));
}
