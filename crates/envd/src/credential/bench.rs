//! A host with its clock, and what clients send it.

use std::{cell::Cell, net::IpAddr};

use serde_json::Value;
use tempfile::TempDir;
use wakeful_wire::host::{Denial, Scopes, TokenRequest, TokenResponse};

use super::{
    Authority, AuthorityOptions, CredentialError, GrantGate, HttpAddress, LiveSocket, PairingOffer,
    Presented, Session,
    testing::{Client, TestClock, claims, env, grant, user},
};

pub(super) struct Bench {
    pub(super) dir: TempDir,
    pub(super) clock: TestClock,
    pub(super) authority: Authority,
    pub(super) gate: GrantGate,
    pub(super) drawn: Cell<u64>,
}

impl Bench {
    pub(super) async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = TestClock::new();
        let authority = open(&dir, &clock, b"pepper").await;
        let gate = GrantGate::new(env(1), "secret");
        Self { dir, clock, authority, gate, drawn: Cell::default() }
    }

    pub(super) fn next(&self) -> u64 {
        self.drawn.set(self.drawn.get() + 1);
        self.drawn.get()
    }

    pub(super) fn address(&self, path: &str) -> HttpAddress {
        let base = HttpAddress::parse("https://w.example/api/host/e1").unwrap();
        base.below(path).unwrap()
    }

    pub(super) fn claims(&self, method: &str, path: &str, token: Option<&str>) -> Value {
        let jti = format!("jti {}", self.next());
        claims(&jti, method, &self.address(path), token, self.clock.now())
    }

    pub(super) fn grant(&self) -> String {
        self.gate.seal(&grant(self.next(), env(1), self.clock.now()))
    }

    pub(super) async fn ask(
        &self,
        request: &TokenRequest,
        proof: &str,
        peer: Option<&str>,
    ) -> Result<TokenResponse, CredentialError> {
        let address = self.address("/oauth/token");
        let presented = Presented {
            method: "POST",
            address: &address,
            authorization: None,
            proof: Some(proof),
        };
        let peer = peer.map(|peer| peer.parse::<IpAddr>().unwrap());
        self.authority.token(request, &presented, peer).await
    }

    pub(super) fn token_proof(&self, client: &Client) -> String {
        client.proof(&self.claims("POST", "/oauth/token", None))
    }

    pub(super) async fn enter(&self, client: &Client) -> TokenResponse {
        let request = TokenRequest::Grant { grant: self.grant(), label: None };
        self.ask(&request, &self.token_proof(client), None).await.unwrap()
    }

    pub(super) async fn pair(&self, client: &Client) -> TokenResponse {
        let code = self.offer();
        self.ask(&pairing(&code), &self.token_proof(client), Some("127.0.0.1")).await.unwrap()
    }

    pub(super) fn offer(&self) -> String {
        let offer =
            PairingOffer { subject: user("owner"), scopes: Scopes::all(), label: "phone".into() };
        self.authority.offer_pairing(offer).code.to_string()
    }

    pub(super) fn show(
        &self,
        authorization: Option<&str>,
        proof: Option<&str>,
    ) -> Result<Session, Denial> {
        let address = self.address("/shell");
        let presented = Presented { method: "GET", address: &address, authorization, proof };
        self.authority.authorize(&presented)
    }

    pub(super) fn get(&self, client: &Client, token: &str) -> Result<Session, Denial> {
        let proof = client.proof(&self.claims("GET", "/shell", Some(token)));
        self.show(Some(&format!("DPoP {token}")), Some(&proof))
    }

    pub(super) fn ticket(&self, client: &Client, token: &str) -> Result<String, Denial> {
        let address = self.address("/ticket");
        let proof = client.proof(&self.claims("POST", "/ticket", Some(token)));
        let presented = Presented {
            method: "POST",
            address: &address,
            authorization: Some(&format!("DPoP {token}")),
            proof: Some(&proof),
        };
        self.authority.ticket(&presented).map(|answer| answer.ticket)
    }

    pub(super) async fn connect(&self, client: &Client, token: &str) -> LiveSocket {
        let ticket = self.ticket(client, token).unwrap();
        self.authority.open_socket(&ticket).await.unwrap()
    }
}

pub(super) async fn open(dir: &TempDir, clock: &TestClock, pepper: &[u8]) -> Authority {
    let path = dir.path().join("sessions.db");
    let options = AuthorityOptions {
        grants: Some(GrantGate::new(env(1), "secret")),
        pepper: pepper.to_vec(),
        ..AuthorityOptions::new(path, clock.sources())
    };
    Authority::open(options).await.unwrap()
}

pub(super) fn pairing(code: &str) -> TokenRequest {
    TokenRequest::Pairing { code: code.to_owned(), label: None }
}
