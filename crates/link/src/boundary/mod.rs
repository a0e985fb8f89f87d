//! Requests and durable subscriptions over whichever session is current.
