//! One WebSocket.
