//! The whole of it, as the HTTP and WebSocket side calls it.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use wakeful_wire::{
    HostSessionId, Timestamp,
    host::{Denial, Scope, SessionMethod, TOKEN_TYPE, TicketResponse, TokenRequest, TokenResponse},
};

use super::{
    address::HttpAddress,
    grant::GrantGate,
    key::Thumbprint,
    ledger::{Issue, Write},
    options::{AuthorityOptions, OpenError},
    pairing::{Pairing, PairingCode, PairingOffer, is_near},
    policy::SessionPolicy,
    proof::{self, Proof, ProofPolicy, ProofTarget},
    refusal::CredentialError,
    replay::ReplayCache,
    session::{self, Session},
    sources::Sources,
    store::{LiveSocket, SessionStore},
    ticket::{TICKET_LIFETIME, Tickets},
    token::{Claims, TokenKey, TokenKind},
};

/// How long a used grant is remembered after its end: longer than a clock is set back by chance.
const USED_GRANT_REMEMBERED: Duration = Duration::from_secs(600);

/// What a request shows of who sent it.
#[derive(Clone, Copy)]
pub struct Presented<'a> {
    /// The request's method, as it was sent.
    pub method: &'a str,
    /// The request's public address: [`HttpAddress::below`] the base that the gateway states.
    pub address: &'a HttpAddress,
    /// The `Authorization` header, if there is exactly one.
    pub authorization: Option<&'a str>,
    /// The `DPoP` header, if there is exactly one.
    pub proof: Option<&'a str>,
}

impl fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presented")
            .field("method", &self.method)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// A pairing code that was just made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairingOffered {
    /// The code, to be shown once.
    pub code: PairingCode,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// Decides who may use this host. Cheap to clone; every clone is the same authority.
#[derive(Clone)]
pub struct Authority {
    inner: Arc<Inner>,
}

struct Inner {
    store: SessionStore,
    tokens: TokenKey,
    grants: Option<GrantGate>,
    replays: Mutex<ReplayCache>,
    tickets: Mutex<Tickets>,
    pairing: Mutex<Pairing>,
    sessions: SessionPolicy,
    proofs: ProofPolicy,
    sources: Sources,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("grants", &self.inner.grants).finish_non_exhaustive()
    }
}

impl Authority {
    /// Opens the session file and everything around it.
    ///
    /// # Errors
    /// When a setting makes no sense or the file cannot be used.
    pub async fn open(options: AuthorityOptions) -> Result<Self, OpenError> {
        options.sessions.check()?;
        let sources = options.sources;
        let (store, key) =
            SessionStore::open(&options.path, sources.clone(), options.sessions.sessions_max)
                .await?;
        let inner = Inner {
            store,
            tokens: TokenKey::new(&key, &options.pepper),
            grants: options.grants,
            replays: Mutex::new(ReplayCache::new(options.replays)),
            tickets: Mutex::default(),
            pairing: Mutex::default(),
            sessions: options.sessions,
            proofs: options.proofs,
            sources,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The sessions: to list, follow and revoke them.
    #[must_use]
    pub fn sessions(&self) -> &SessionStore {
        &self.inner.store
    }

    /// Answers the token endpoint. `peer` is who asks, as far as this host sees; pairing needs it
    /// to be near.
    ///
    /// Nothing is used up by a request whose proof does not hold.
    ///
    /// # Errors
    /// A [`Denial`] for whatever is wrong with what was shown; else when sessions cannot be stored.
    pub async fn token(
        &self,
        request: &TokenRequest,
        presented: &Presented<'_>,
        peer: Option<IpAddr>,
    ) -> Result<TokenResponse, CredentialError> {
        match request {
            TokenRequest::Grant { grant, label } => {
                self.exchange_grant(grant, label.as_deref(), presented).await
            }
            TokenRequest::Pairing { code, label } => {
                if !peer.is_some_and(is_near) {
                    return Err(Denial::PairingPeer.into());
                }
                self.exchange_code(code, label.as_deref(), presented).await
            }
            TokenRequest::Refresh { refresh_token } => self.renew(refresh_token, presented).await,
        }
    }

    async fn exchange_grant(
        &self,
        text: &str,
        label: Option<&str>,
        presented: &Presented<'_>,
    ) -> Result<TokenResponse, CredentialError> {
        let now = self.inner.sources.now();
        let gate = self.inner.grants.as_ref().ok_or(Denial::GrantUnsupported)?;
        // First what is cheap to check and nobody else can make.
        let grant = gate.open(text, now)?;
        let proof = self.prove(presented, None, now)?;
        self.inner.replays.lock().take(&proof, now)?;
        let issue = Issue {
            id: self.draw_id(),
            subject: grant.subject,
            scopes: grant.scopes,
            method: SessionMethod::Grant,
            key: proof.key(),
            label: session::label(label, "client"),
            lifetime: self.inner.sessions.granted,
            replaces: false,
        };
        let used = Write::UseGrant {
            id: grant.id,
            remembered_until: grant.expires_at.after(USED_GRANT_REMEMBERED),
        };
        let session = self.inner.store.issue(issue, Some(used)).await?;
        Ok(self.answer(&session))
    }

    async fn exchange_code(
        &self,
        code: &str,
        label: Option<&str>,
        presented: &Presented<'_>,
    ) -> Result<TokenResponse, CredentialError> {
        let now = self.inner.sources.now();
        let proof = self.prove(presented, None, now)?;
        let offer = self.inner.pairing.lock().redeem(code, now)?;
        self.inner.replays.lock().take(&proof, now)?;
        let issue = Issue {
            id: self.draw_id(),
            subject: offer.subject,
            scopes: offer.scopes,
            method: SessionMethod::Pairing,
            key: proof.key(),
            label: session::label(label, &offer.label),
            lifetime: self.inner.sessions.paired,
            replaces: false,
        };
        let session = self.inner.store.issue(issue, None).await?;
        Ok(self.answer(&session))
    }

    async fn renew(
        &self,
        text: &str,
        presented: &Presented<'_>,
    ) -> Result<TokenResponse, CredentialError> {
        let now = self.inner.sources.now();
        let claims = self.inner.tokens.read(text, TokenKind::Refresh, now)?;
        let proof = self.prove(presented, None, now)?;
        self.standing(&claims, proof.key())?;
        self.inner.replays.lock().take(&proof, now)?;
        let session = self.inner.store.extend(claims.sid, self.inner.sessions.paired).await?;
        Ok(self.answer(&session))
    }

    /// Decides a request by its access token and its proof, and says which session sent it. What
    /// the session may do is asked of it: [`Session::allows`].
    ///
    /// The token is checked first, its shape, signature, content and end; then the proof; then
    /// that both name the same key; then that the session is there and neither revoked nor over;
    /// last that the proof is new. So proofs are remembered only of clients that may enter.
    ///
    /// # Errors
    /// A [`Denial`] for each cause. See [`challenge`](super::challenge) for the header of the
    /// answer.
    pub fn authorize(&self, presented: &Presented<'_>) -> Result<Session, Denial> {
        let now = self.inner.sources.now();
        let token = access_token(presented.authorization)?;
        let claims = self.inner.tokens.read(token, TokenKind::Access, now)?;
        let proof = self.prove(presented, Some(token), now)?;
        let session = self.standing(&claims, proof.key())?;
        self.inner.replays.lock().take(&proof, now)?;
        Ok(session)
    }

    /// A ticket with which the sender of this request opens one socket.
    ///
    /// # Errors
    /// As [`Self::authorize`].
    pub fn ticket(&self, presented: &Presented<'_>) -> Result<TicketResponse, Denial> {
        let session = self.authorize(presented)?;
        session.allows(Scope::Read)?;
        let now = self.inner.sources.now();
        let ticket = self.inner.tickets.lock().issue(session.id, &self.inner.sources.random(), now);
        Ok(TicketResponse { ticket, expires_in: TICKET_LIFETIME.as_secs() })
    }

    /// Opens a socket with a ticket, which is used up by it. The socket counts as connected until
    /// what is returned is dropped.
    ///
    /// # Errors
    /// A [`Denial`] for whatever is wrong with the ticket, or with the session behind it: a ticket
    /// that is good itself is refused once its session is revoked or over.
    pub async fn open_socket(&self, ticket: &str) -> Result<LiveSocket, Denial> {
        let now = self.inner.sources.now();
        let session = self.inner.tickets.lock().redeem(ticket, now)?;
        self.inner.store.connect(session).await
    }

    /// Opens a socket for whoever shows a token and a proof with the upgrade itself, without a
    /// ticket and the round trip that it costs. The socket counts as connected until what is
    /// returned is dropped.
    ///
    /// # Errors
    /// As [`Self::ticket`].
    pub async fn enter(&self, presented: &Presented<'_>) -> Result<LiveSocket, Denial> {
        let session = self.authorize(presented)?;
        session.allows(Scope::Read)?;
        self.inner.store.connect(session.id).await
    }

    /// Makes a pairing code. Whoever asks for it must be allowed to ([`Scope::Sessions`], or sit at
    /// the machine itself), and must not give more scopes than it has.
    #[must_use]
    pub fn offer_pairing(&self, offer: PairingOffer) -> PairingOffered {
        let now = self.inner.sources.now();
        let random = self.inner.sources.random();
        let (code, expires_at) = self.inner.pairing.lock().offer(offer, random, now);
        PairingOffered { code, expires_at }
    }

    fn prove(
        &self,
        presented: &Presented<'_>,
        access_token: Option<&str>,
        now: Timestamp,
    ) -> Result<Proof, Denial> {
        let target = ProofTarget {
            method: presented.method,
            address: presented.address,
            access_token,
            nonces: None,
        };
        let text = presented.proof.ok_or(Denial::ProofMissing)?;
        proof::verify(text, &target, &self.inner.proofs, now)
    }

    /// The session that a token names, if the token is bound to this key.
    fn standing(&self, claims: &Claims, key: Thumbprint) -> Result<Session, Denial> {
        if claims.key()? != key {
            return Err(Denial::TokenKey);
        }
        let session = self.inner.store.holding(claims.sid)?;
        // The sandbox's programs may have written the file. What was signed counts: a row that says
        // anything else is not the session that the token was made for.
        if !claims.describe(&session) {
            return Err(Denial::SessionUnknown);
        }
        Ok(session)
    }

    fn answer(&self, session: &Session) -> TokenResponse {
        let now = self.inner.sources.now();
        let expires_at = now.after(self.inner.sessions.access_token).min(session.expires_at);
        let refresh_token = match session.method {
            SessionMethod::Grant | SessionMethod::Other => None,
            SessionMethod::Pairing => Some(self.inner.tokens.refresh(session, now)),
        };
        TokenResponse {
            access_token: self.inner.tokens.access(session, now, expires_at),
            token_type: TOKEN_TYPE.to_owned(),
            expires_in: now.until(expires_at).as_secs(),
            scope: session.scopes.clone(),
            refresh_token,
            session: session.id,
        }
    }

    fn draw_id(&self) -> HostSessionId {
        let random = self.inner.sources.random();
        HostSessionId::from_uuid(uuid::Builder::from_random_bytes(random).into_uuid())
    }
}

/// The token of an `Authorization` header with the `DPoP` scheme.
fn access_token(authorization: Option<&str>) -> Result<&str, Denial> {
    let value = authorization.ok_or(Denial::TokenMissing)?.trim_ascii();
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case(TOKEN_TYPE) {
        return Err(Denial::TokenScheme);
    }
    let token = token.trim_ascii_start();
    if token.is_empty() { Err(Denial::TokenMissing) } else { Ok(token) }
}
