//! The pages, as a browser without script meets them.

use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{Answer, Call, ORIGIN, User, World};

struct Browser {
    world: World,
    user: User,
    cookie: String,
}

impl Browser {
    async fn new() -> Self {
        let world = World::new().await;
        let user = world.user("alice").await;
        let cookie = world.cookie(&user).await;
        Self { world, user, cookie }
    }

    async fn load(&self, path: &str) -> Answer {
        self.world.send(Call::get(path).page().cookie(&self.cookie)).await
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        let call = Call::post(path).page().cookie(&self.cookie).origin(ORIGIN).form(form);
        self.world.send(call).await
    }

    fn page(&self) -> String {
        format!("/environments/{}", self.user.project)
    }
}

#[tokio::test]
async fn every_page_is_whole_and_allows_nothing_foreign() {
    let browser = Browser::new().await;
    let pages = [
        "/projects".to_owned(),
        "/projects/new".into(),
        "/account".into(),
        "/deleted".into(),
        browser.page(),
        format!("{}/files", browser.page()),
        "/login?next=/account".into(),
        "/signup".into(),
        "/nothing-here".into(),
    ];
    for path in pages {
        let answer = browser.load(&path).await;
        let text = answer.text();
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>"), "{path}");
        assert_eq!(text.matches("<h1").count(), 1, "{path} has one heading");
        assert!(!text.contains("<style") && !text.contains(" style="), "{path}");
        assert!(!text.contains("onclick") && !text.contains("<script>"), "{path}");
        let csp = answer.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "style-src 'self'",
            "script-src 'self'",
            "connect-src 'self'",
            "img-src 'self' data:",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(csp.contains(part), "{path}: {csp}");
        }
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "same-origin");
        assert_eq!(answer.header("cache-control"), "no-store");
        // Each field has a label of its own.
        for id in text.split("<input id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(text.contains(&format!("for=\"{id}\"")), "{path}: {id} has no label");
        }
    }
}

#[tokio::test]
async fn the_front_door_leads_in() {
    let browser = Browser::new().await;
    let stranger = browser.world.send(Call::get("/").page()).await;
    assert_eq!(stranger.status, StatusCode::OK);
    assert!(stranger.text().contains("action=\"/users\""));
    let csp = stranger.header("content-security-policy");
    assert!(csp.contains("form-action 'self' http://*.wakeful.localhost:7878;"), "{csp}");
    assert_eq!(browser.load("/").await.location(), "/projects");
    assert_eq!(browser.load("/login").await.location(), "/projects");
    assert_eq!(browser.load("/users").await.location(), "/signup");
}

#[tokio::test]
async fn assets_are_kept_for_good_and_answer_by_tag() {
    let browser = Browser::new().await;
    let page = browser.load("/projects").await;
    let text = page.text();
    let mut found = 0;
    for start in ["href=\"/.wakeful/assets/", "src=\"/.wakeful/assets/"] {
        for rest in text.split(start).skip(1) {
            let path = format!("/.wakeful/assets/{}", rest.split('"').next().unwrap());
            let asset = browser.world.send(Call::get(&path)).await;
            assert_eq!(asset.status, StatusCode::OK, "{path}");
            assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable");
            let tag = asset.header("etag").to_owned();
            let again = browser.world.send(Call::get(&path).header("if-none-match", &tag)).await;
            assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
            found += 1;
        }
    }
    assert_eq!(found, 3, "stylesheet, icon and script");
    let old = browser.world.send(Call::get("/.wakeful/assets/style-0000000000000000.css")).await;
    old.refused(404, "not_found");
}

#[tokio::test]
async fn the_buttons_of_an_environment_work_without_script() {
    let browser = Browser::new().await;
    browser.world.phase(&browser.user, "ready").await;
    let page = browser.page();
    let text = browser.load(&page).await;
    for words in ["Awake", "Put to sleep", "Restart", "Extend", "Sleeps in", "Open app"] {
        assert!(text.text().contains(words), "{words}");
    }
    let app = format!("http://{}-dev.apps.wakeful.localhost:7878/", browser.user.project);
    assert!(text.text().contains(&app));
    let answer = browser.post(&format!("{page}/suspend"), &[]).await;
    assert_eq!((answer.status, answer.location()), (StatusCode::SEE_OTHER, page.as_str()));
    browser.world.phase(&browser.user, "suspended").await;
    let text = browser.load(&page).await;
    assert!(
        text.text().contains("Asleep")
            && text.text().contains("action=\"")
            && text.text().contains("/wake\"")
    );
    assert!(!text.text().contains("Put to sleep"));
    browser.post(&format!("{page}/wake"), &[]).await;
    browser.world.phase(&browser.user, "ready").await;
    let answer = browser.post(&format!("{page}/extend"), &[("minutes", "240")]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert!(browser.load(&page).await.text().contains("extended"));
    let answer = browser.post(&format!("{page}/restart"), &[]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(
        browser.load(&format!("{page}/wake")).await.location(),
        page,
        "a reload is harmless"
    );
}

#[tokio::test]
async fn variables_are_set_and_removed_on_the_page_and_secrets_stay_hidden() {
    let browser = Browser::new().await;
    let page = browser.page();
    let to = format!("{page}/variables");
    let secret = [("name", "API_KEY"), ("value", "sk-0123456789abcdef"), ("secret", "yes")];
    assert_eq!(browser.post(&to, &secret).await.status, StatusCode::SEE_OTHER);
    browser.post(&to, &[("name", "LINES"), ("value", "a\r\nb")]).await;
    let text = browser.load(&page).await;
    assert!(text.text().contains("••••••••cdef") && !text.text().contains("0123456789"));
    assert!(text.text().contains("a\nb"));
    let answer = browser.post(&to, &[("name", "WAKEFUL_X"), ("value", "1")]).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(
        answer.text().contains("platform&#39;s own") || answer.text().contains("platform's own")
    );
    browser.post(&format!("{to}/API_KEY/remove"), &[]).await;
    assert!(!browser.load(&page).await.text().contains("API_KEY</code>"));
}

#[tokio::test]
async fn what_people_type_is_shown_as_text() {
    let browser = Browser::new().await;
    let title = "<script>alert(1)</script>\"'&";
    let made = browser.post("/projects", &[("title", title), ("template", "demo")]).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{made:?}");
    let page = browser.load(made.location()).await;
    let page = browser.load(page.location()).await;
    let list = browser.load("/projects").await;
    for answer in [&page, &list] {
        assert!(!answer.text().contains("<script>alert"));
        assert!(answer.text().contains("&lt;script&gt;alert(1)"));
    }
}

#[tokio::test]
async fn a_project_is_made_with_a_choice_that_says_what_is_missing() {
    let browser = Browser::new().await;
    let text = browser.load("/projects/new").await;
    assert!(text.text().contains("exotic is not installed: install exotic"));
    assert!(text.text().contains("A page to begin with."));
    let bad = browser.post("/projects", &[("title", "Shop"), ("template", "exotic")]).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    assert!(bad.text().contains("role=\"alert\"") && bad.text().contains("value=\"Shop\""));
    let made = browser.post("/projects", &[("title", "Shop"), ("template", "demo")]).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER);
    assert!(browser.load("/projects").await.text().contains("Shop"));
}

#[tokio::test]
async fn a_project_is_deleted_and_restored_on_its_pages() {
    let browser = Browser::new().await;
    let project = format!("/projects/{}", browser.user.project);
    let answer = browser.post(&format!("{project}/delete"), &[]).await;
    assert_eq!(answer.location(), "/deleted");
    assert_eq!(browser.load(&browser.page()).await.status, StatusCode::NOT_FOUND);
    // Its sandbox is still being taken down, after which it stands where deleted projects are kept.
    let mut list = browser.load("/projects").await;
    while !list.text().contains("Deleted (1)") {
        tokio::task::yield_now().await;
        list = browser.load("/projects").await;
    }
    let mut deleted = browser.load("/deleted").await;
    while !deleted.text().contains("My project") {
        tokio::task::yield_now().await;
        deleted = browser.load("/deleted").await;
    }
    let kept = ["in 7 days", "in 6 days"].iter().any(|words| deleted.text().contains(words));
    assert!(kept, "{}", deleted.text());
    let answer = browser.post(&format!("{project}/restore"), &[]).await;
    assert_eq!(answer.location(), project);
    assert_eq!(browser.load(&project).await.location(), browser.page());
}

#[tokio::test]
async fn files_are_browsed_uploaded_and_removed_on_a_page() {
    let browser = Browser::new().await;
    let page = format!("{}/files", browser.page());
    assert!(browser.load(&page).await.text().contains("Nothing stands here yet."));
    std::fs::create_dir(browser.world.workspace(&browser.user).join("a b")).unwrap();
    let upload = |name: &str, cookie: &str| {
        let body = format!(
            "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n\
             hello\r\n--XX--\r\n"
        );
        Call::post(&format!("{page}?path=a%20b"))
            .page()
            .cookie(cookie)
            .header("content-type", "multipart/form-data; boundary=XX")
            .body(body)
    };
    let foreign = upload("x.txt", &browser.cookie).origin("http://evil.example");
    assert_eq!(browser.world.send(foreign).await.status, StatusCode::FORBIDDEN);
    let answer = browser.world.send(upload("dir/x.txt", &browser.cookie).origin(ORIGIN)).await;
    assert_eq!(answer.location(), format!("{page}?path=a%20b"), "{answer:?}");
    let listing = browser.load(answer.location()).await;
    let start = format!("/api/projects/{}/files/a%20b/x.txt?", browser.user.project);
    assert!(listing.text().contains(&start), "{}", listing.text());
    let link = listing.text().split(&start).nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(browser.load(&format!("{start}{link}")).await.text(), "hello");
    let answer = browser.post(&format!("{page}/remove"), &[("path", "a b/x.txt")]).await;
    assert_eq!(answer.location(), format!("{page}?path=a%20b"));
    assert!(!browser.load(answer.location()).await.text().contains("x.txt"));
    for bad in ["../x", "/etc", "missing"] {
        let answer = browser.load(&format!("{page}?path={bad}")).await;
        assert!(answer.status.is_client_error(), "{bad}");
    }
}

#[tokio::test]
async fn the_account_page_makes_tokens_and_ends_sessions() {
    let browser = Browser::new().await;
    let made = browser.post("/account/tokens", &[("name", "laptop")]).await;
    assert_eq!(made.status, StatusCode::OK);
    let token = made.text().split("class=\"secret\">").nth(1).unwrap();
    let token = token.split('<').next().unwrap().to_owned();
    assert!(token.starts_with("wk_"));
    let me = Call::get("/api/me").header("x-wakeful-token", &token);
    assert_eq!(browser.world.send(me).await.status, StatusCode::OK);
    let page = browser.load("/account").await;
    assert!(page.text().contains("laptop") && !page.text().contains(&token));
    let bad = browser.post("/account/tokens", &[("name", "")]).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);

    let other = browser.world.cookie(&browser.user).await;
    let form = [("current", "correct horse"), ("new", "battery staple")];
    let changed = browser.post("/account/password", &form).await;
    assert!(changed.text().contains("The password is changed"));
    let gone = browser.world.send(Call::get("/api/me").cookie(&other)).await;
    gone.refused(401, "unauthenticated");
    let wrong = browser.post("/account/password", &form).await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    assert!(wrong.text().contains("is wrong"));

    let out = browser.post("/account/sign-out-everywhere", &[]).await;
    assert_eq!(out.location(), "/login");
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(browser.load("/account").await.location(), "/login?next=%2Faccount");
}

#[tokio::test]
async fn a_failed_start_is_explained() {
    let browser = Browser::new().await;
    let page = browser.page();
    browser.post(&format!("{page}/suspend"), &[]).await;
    browser.world.phase(&browser.user, "suspended").await;
    browser.world.driver.fail_next_create(wakeful_lifecycle::StartFault {
        reason: "exotic is not installed".into(),
        permanent: true,
    });
    browser.post(&format!("{page}/wake"), &[]).await;
    browser.world.phase(&browser.user, "failed").await;
    let text = browser.load(&page).await;
    for words in ["Cannot start", "exotic is not installed", "until something is changed", "Wake"] {
        assert!(text.text().contains(words), "{words}");
    }
    let wake = format!("/api/environments/{}/wake", browser.user.project);
    let call = browser.user.call(Method::POST, &wake).json(&json!({}));
    assert_eq!(browser.world.send(call).await.status, StatusCode::ACCEPTED);
}
