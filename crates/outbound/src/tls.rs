//! TLS: rustls with the provider `ring`, and the root certificates of the machine.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

use crate::Fault;

/// What the machine trusts.
pub(crate) fn machine_config() -> Result<Arc<ClientConfig>, Fault> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, ignored) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(added, ignored, errors = ?found.errors, "root certificates read");
    if added == 0 {
        return Err(Fault::Connect {
            host: "https".into(),
            cause: "this machine has no root certificates: install ca-certificates or set SSL_CERT_FILE"
                .into(),
        });
    }
    Ok(config(roots))
}

/// A configuration that trusts `roots`.
pub(crate) fn config(roots: RootCertStore) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::DEFAULT_VERSIONS)
        .unwrap_or_else(|error| unreachable!("ring speaks the default versions of TLS: {error}"));
    let mut config = versions.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A server named `localhost` that says `answer` on every connection, and the certificate that vouches for it.
    pub(crate) async fn server(answer: &'static [u8]) -> (SocketAddr, CertificateDer<'static>) {
        let certificate = CertificateDer::from_pem_slice(include_bytes!("../tests/localhost.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_slice(include_bytes!("../tests/localhost.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = [0; 1_024];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            }
        });
        (address, certificate)
    }
}
