"""Certificates and keys for tests, made with the program openssl.

    with Workshop() as shop:
        pair = shop.signed("server")               # by itself
        ca = shop.signed("ca", ca=True)
        client = shop.signed("client", by=ca, names="DNS:worker1.example")

A pair has the files `certificate` and `key`; its certificate may be a chain. All are gone with the workshop.
"""

import os
import ssl
import subprocess
import tempfile

P256 = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
RSA = ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")


def openssl(*words, clock=()):
    subprocess.run([*clock, "openssl", *words], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)


class Pair:
    def __init__(self, certificate, key):
        self.certificate, self.key = certificate, key

    def __iter__(self):
        return iter((self.certificate, self.key))

    def options(self):
        """The options of claimd that show it."""
        return "--tls-certificate", self.certificate, "--tls-key", self.key

    def overwrite(self, other):
        """Puts another pair in the place of this one."""
        for old, new in zip(self, other):
            with open(new, "rb") as source, open(old, "wb") as target:
                target.write(source.read())


class Workshop:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="claimd-tls-")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def key(self, name, algorithm=P256):
        path = self.path(name + ".key")
        openssl("genpkey", *algorithm, "-out", path)
        os.chmod(path, 0o600)
        return path

    def signed(self, name, by=None, algorithm=P256, days=30, names="DNS:localhost,IP:127.0.0.1",
               subject=None, ca=False, usage=None):
        """A pair, signed by another one or by itself."""
        key, request, certificate = (self.key(name, algorithm), self.path(name + ".csr"),
                                     self.path(name + ".crt"))
        openssl("req", "-new", "-key", key, "-subj", subject or "/CN=" + name, "-out", request)
        lines = ["basicConstraints=critical,CA:%s" % ("TRUE" if ca else "FALSE")]
        if names:
            lines.append("subjectAltName=" + names)
        if usage:
            lines.append("extendedKeyUsage=" + usage)
        with open(self.path(name + ".ext"), "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
        signer = ("-signkey", key) if by is None else ("-CA", by.certificate, "-CAkey", by.key,
                                                       "-CAcreateserial")
        # OpenSSL 3.5 makes no certificate that has expired already.
        clock = () if days > 0 else ("faketime", "%d days ago" % (1 - days))
        openssl("x509", "-req", "-in", request, *signer, "-days", str(max(days, 1)), "-extfile",
                self.path(name + ".ext"), "-out", certificate, clock=clock)
        return Pair(certificate, key)

    def file(self, name, text, mode=0o600):
        path = self.path(name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def close(self):
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def trusting(certificate, version=None, client=None):
    """The context of a client that trusts this certificate, speaks this version only, and shows a pair."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificate)
    context.set_alpn_protocols(["http/1.1"])
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if client is not None:
        context.load_cert_chain(*client)
    return context
