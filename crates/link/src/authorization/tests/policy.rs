//! One retry of a refused request.

use super::*;

#[test]
fn a_request_that_the_host_refuses_for_its_token_is_sent_once_more_and_only_once() {
    let table = [
        (401, Some("DPoP error=\"invalid_token\", algs=\"ES256 EdDSA\""), true),
        (401, Some("DPoP algs=\"ES256 EdDSA\""), true),
        (401, Some("dpop"), true),
        (401, Some("Bearer realm=\"wakeful\", DPoP algs=\"ES256\""), true),
        (401, Some("Bearer realm=\"wakeful\""), false),
        (401, Some("Bearer error_description=\"send it, DPoP bound\""), false),
        (401, Some("DPoPish x=\"y\""), false),
        (401, Some(""), false),
        (401, None, false),
        (403, Some("DPoP error=\"insufficient_scope\""), false),
        (200, Some("DPoP"), false),
        (503, Some("DPoP"), false),
    ];
    for (status, challenge, retry) in table {
        assert_eq!(HttpPolicy::retry(status, challenge, false), retry, "{status} {challenge:?}");
        assert!(!HttpPolicy::retry(status, challenge, true), "{status} {challenge:?}");
    }
}
