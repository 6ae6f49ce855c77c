#!/bin/bash
# libcurl keeps a CA file for a day, but only if CURLOPT_CAPATH is NULL.
#
# A program keeps its handle, and calls curl_easy_reset() before each transfer. The CA gets a new key: the server has
# another certificate, and CURLOPT_CAINFO names the same file with other content. The manual says that libcurl may keep
# certificates in memory for 24 hours (CURLOPT_CA_CACHE_TIMEOUT).
#
# Guess:     the handle refuses the new certificate for a day, whatever else is set.
# Behavior:  it reads the file anew for each connection, because libcurl of Debian has a default for CURLOPT_CAPATH,
#            /etc/ssl/certs. If a program sets CURLOPT_CAPATH to NULL, to trust in nothing but its file, the handle
#            refuses the new certificate. CURLOPT_CA_CACHE_TIMEOUT 0 ends that. A new handle accepts it.
#
# libcurl-gnutls 8.14.1 of Debian 13 does the same. libcurl-gnutls 7.88.1 of Debian 12 and 8.22.0 of testing read the
# file anew with CURLOPT_CAPATH NULL, too.
#
# Takes libcurl 7.88.1 of Debian 12 into a temporary folder. Needs openssl and python3. Exits with 1 if libcurl behaves
# otherwise.
set -euo pipefail
version=7.88.1-10+deb12u15
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "libcurl4=$version" >/dev/null 2>&1 ||
    { echo "apt-get cannot download libcurl4 $version" >&2; exit 1; }
dpkg-deb -x libcurl4_*.deb .
for name in old new; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$name.key" -out "$name.pem" 2>/dev/null
done
LIBCURL=$(find "$folder" -name 'libcurl.so.4.*') python3 - <<'END'
import ctypes
import os
import shutil
import socket
import ssl
import sys
import threading

URL, CAINFO, CAPATH, WRITEFUNCTION, CA_CACHE_TIMEOUT = 10002, 10065, 10097, 20011, 321
curl = ctypes.CDLL(os.environ["LIBCURL"])
curl.curl_easy_init.restype = ctypes.c_void_p
curl.curl_version.restype = ctypes.c_char_p
curl.curl_easy_strerror.restype = ctypes.c_char_p
DATA = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
drop = DATA(lambda _, size, count, __: size * count)
print(curl.curl_version().decode())

listener = socket.create_server(("127.0.0.1", 0))
context = None


def serve():
    while True:
        connection, _ = listener.accept()
        try:
            with context.wrap_socket(connection, server_side=True) as secure:
                secure.recv(4096)
                secure.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        except OSError:
            pass


def change(name):
    global context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(name + ".pem", name + ".key")
    shutil.copy(name + ".pem", "ca.pem")


def get(handle, *options):
    curl.curl_easy_reset(handle)
    for option, value in ((URL, b"https://127.0.0.1:%d/" % listener.getsockname()[1]), (CAINFO, b"ca.pem"),
                          (WRITEFUNCTION, drop)) + options:
        curl.curl_easy_setopt(handle, option, value)
    return curl.curl_easy_perform(handle)


def new_handle():
    return ctypes.c_void_p(curl.curl_easy_init())


threading.Thread(target=serve, daemon=True).start()
none, never = (CAPATH, None), (CA_CACHE_TIMEOUT, ctypes.c_long(0))
seen = []
for name, options in ("CAINFO", ()), ("CAINFO, CAPATH NULL", (none,)), ("the same without cache", (none, never)):
    handle = new_handle()
    change("old")
    codes = [get(handle, *options)]
    change("new")
    codes += [get(handle, *options), get(new_handle(), *options)]
    print("%-22s old %d, new %d, new with a new handle %d" % (name, *codes))
    seen.append(codes)
print("60 is:", curl.curl_easy_strerror(60).decode())
sys.stdout.flush()
os._exit(seen != [[0, 0, 0], [0, 60, 0], [0, 0, 0]])
END
