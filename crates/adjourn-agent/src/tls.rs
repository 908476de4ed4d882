//! TLS for all that this crate fetches, and for programs with an HTTP client beside it: rustls with
//! ring.

/// Makes ring the cryptography of this process, unless the host has chosen another before.
///
/// The HTTP client brings none of its own, so that there is one such library in a program.
pub fn choose_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster; then there is one, too.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
