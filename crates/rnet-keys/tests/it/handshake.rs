//! TLS between two keys files, in memory.

use rnet_keys::{KeyError, KeysFile};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, Error, ProtocolVersion, ServerConnection};

use crate::Folder;

/// The two sides after a handshake, with their errors.
struct Sides {
    client: Connection,
    server: Connection,
    errors: [Option<Error>; 2],
}

fn handshake(client: &KeysFile, server: &KeysFile) -> Sides {
    let name = ServerName::try_from("any").unwrap();
    let client = ClientConnection::new(client.client_config(), name).unwrap().into();
    let server = ServerConnection::new(server.server_config()).unwrap().into();
    let mut sides = Sides { client, server, errors: [None, None] };
    while sides.client.wants_write() || sides.server.wants_write() {
        let Sides { client, server, errors } = &mut sides;
        errors[1] = errors[1].take().or(deliver(client, server));
        errors[0] = errors[0].take().or(deliver(server, client));
    }
    sides
}

/// Moves what one side has written to the other, and returns its error.
fn deliver(from: &mut Connection, to: &mut Connection) -> Option<Error> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        if let Err(why) = to.process_new_packets() {
            return Some(why);
        }
    }
    None
}

/// What each side reports.
fn reasons(client: &KeysFile, server: &KeysFile) -> [String; 2] {
    let sides = handshake(client, server);
    sides.errors.map(|why| KeyError::handshake(&why.expect("refused")))
}

#[test]
fn two_hosts_of_one_authority_know_each_other() {
    let folder = Folder::new();
    let (a, b) = (folder.host("a"), folder.host("b"));
    let sides = handshake(&a, &b);
    assert_eq!(sides.errors, [None, None]);
    assert!(!sides.client.is_handshaking() && !sides.server.is_handshaking());
    assert_eq!(sides.client.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    let seen = [(&a, &sides.client, &b), (&b, &sides.server, &a)];
    for (own, side, other) in seen {
        let peer = own.peer(side.peer_certificates().unwrap()).unwrap();
        assert_eq!(peer.name, other.certificate().name);
        assert_eq!(peer.serial, other.certificate().serial);
    }
    // Both sides derive the same keys, which no other handshake has.
    let export = |side: &Connection| {
        side.export_keying_material([0; 32], b"EXPORTER-rnet", Some(b"frames")).unwrap()
    };
    assert_eq!(export(&sides.client), export(&sides.server));
    assert_ne!(export(&sides.client), export(&handshake(&a, &b).client));
}

#[test]
fn a_host_of_another_authority_is_refused_by_both_sides() {
    let (folder, other) = (Folder::new(), Folder::new());
    let (own, foreign) = (folder.host("a"), other.host("b"));
    let [client, server] = reasons(&own, &foreign);
    assert!(client.contains("the certificate of host b is not from authority"), "{client}");
    assert!(server.contains("it refuses this host"), "{server}");
    let certificate = crate::certificate_der(foreign.certificate_pem()).into();
    let why = own.peer(&[certificate]).unwrap_err();
    assert!(matches!(&why, KeyError::Foreign { name, .. } if name == "b"), "{why}");
    assert!(why.to_string().contains("rnet keys add-host b"), "{why}");
}

#[test]
fn expired_and_early_certificates_are_refused() {
    let folder = Folder::new();
    let good = folder.host("good");
    let old = folder.host_of_years("old", 2020, 2021);
    let early = folder.host_of_years("early", 2090, 2091);
    assert!(old.certificate().expires_in().is_none() && early.certificate().expires_in().is_some());
    for (bad, word) in
        [(&old, "certificate of host old expired on"), (&early, "host early is not valid before")]
    {
        // As server, and as client: the other side says why, and this one that it was refused.
        let [client, server] = reasons(&good, bad);
        assert!(
            client.contains(word) && server.contains("it refuses this host"),
            "{client} {server}"
        );
        let [client, server] = reasons(bad, &good);
        assert!(
            server.contains(word) && client.contains("it refuses this host"),
            "{client} {server}"
        );
    }
    let of = |keys: &KeysFile| {
        good.peer(&[crate::certificate_der(keys.certificate_pem()).into()]).unwrap_err()
    };
    assert!(
        matches!(of(&old), KeyError::Expired { name, date } if name == "old" && date == "2021-01-01")
    );
    assert!(matches!(of(&early), KeyError::NotYetValid { date, .. } if date == "2090-01-01"));
    assert!(good.peer(&[]).is_err() && good.peer(&[b"none".to_vec().into()]).is_err());
}

#[test]
fn a_host_cannot_issue_certificates() {
    use rcgen::{CertificateParams, Issuer, KeyPair};
    let folder = Folder::new();
    let (good, thief) = (folder.host("good"), folder.host("thief"));
    let key = KeyPair::from_pem(thief.key_pem()).unwrap();
    let own = KeyPair::generate().unwrap();
    let params: CertificateParams = crate::params("admin");
    let issued = params.signed_by(&own, &Issuer::new(crate::params("thief"), key)).unwrap();
    let chain = [issued.der().clone(), crate::certificate_der(thief.certificate_pem()).into()];
    let why = good.peer(&chain).unwrap_err();
    assert!(matches!(&why, KeyError::Foreign { name, .. } if name == "admin"), "{why}");
    // Nor does a keys file take it as authority.
    let text = format!("{}{}{}", issued.pem(), own.serialize_pem(), thief.certificate_pem());
    let path = folder.path("forged.pem");
    crate::write_private(&path, &text);
    let why = KeysFile::load(&path).unwrap_err().to_string();
    assert!(why.contains("not an authority's"), "{why}");
}
