//! The data plane over real sockets: a scripted upstream behind the gateway, a control plane in
//! memory beside it, and clients that send what a test says.

#[cfg(test)]
mod access_log;
#[cfg(test)]
mod admission;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod host_surface;
#[cfg(test)]
mod host_surface_sockets;
#[cfg(test)]
mod http;
#[cfg(test)]
mod sockets;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod support;
