#!/bin/bash
# libcurl: curl_easy_reset() does not forget that a request body must be sent anew.
#
# A POST reads its body with CURLOPT_READFUNCTION. The server closes the kept connection when it has the request, and
# refuses the new connection on which libcurl wants to repeat the request. The transfer fails with
# CURLE_COULDNT_CONNECT, as it should. The manual says that curl_easy_reset() sets all options to the defaults of a new
# handle and keeps connections, session IDs, the DNS cache, cookies, shares and alt-svc.
#
# Guess:     after curl_easy_reset(), the next POST with the handle works like one with a new handle.
# Behavior:  it fails with CURLE_SEND_FAIL_REWIND before it sends a byte, because libcurl still wants to rewind the body
#            of the earlier request. The POST after that works.
#
# Takes libcurl 7.88.1 of Debian 12 into a temporary folder. Needs python3. Exits with 1 if libcurl behaves otherwise.
set -euo pipefail
version=7.88.1-10+deb12u15
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "libcurl4=$version" >/dev/null 2>&1 ||
    { echo "apt-get cannot download libcurl4 $version" >&2; exit 1; }
dpkg-deb -x libcurl4_*.deb .
LIBCURL=$(find "$folder" -name 'libcurl.so.4.*') python3 - <<'END'
import ctypes
import os
import socket
import sys
import threading

URL, READFUNCTION, SEEKFUNCTION, POST, POSTFIELDSIZE = 10002, 20012, 20167, 47, 60
WRITEFUNCTION = 20011
curl = ctypes.CDLL(os.environ["LIBCURL"])
curl.curl_easy_init.restype = ctypes.c_void_p
curl.curl_version.restype = ctypes.c_char_p
curl.curl_easy_strerror.restype = ctypes.c_char_p
DATA = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_size_t,
                        ctypes.c_void_p)
SEEK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int)
print(curl.curl_version().decode())

listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
left = 1


def read(space, size, count, _):
    global left
    if left == 0:
        return 0
    space[0], left = b"x", 0
    return 1


read, seek = DATA(read), SEEK(lambda *_: 1)  # CURL_SEEKFUNC_FAIL
drop = DATA(lambda _, size, count, __: size * count)


def request(connection):
    data = b""
    while not data.endswith(b"\r\n\r\nx"):
        part = connection.recv(4096)
        if not part:
            raise OSError("closed without a request")
        data += part


def post(handle):
    global left
    left = 1
    curl.curl_easy_reset(handle)
    for option, value in ((URL, b"http://127.0.0.1:%d/" % port), (READFUNCTION, read), (SEEKFUNCTION, seek),
                          (WRITEFUNCTION, drop), (POST, ctypes.c_long(1)), (POSTFIELDSIZE, ctypes.c_long(1))):
        curl.curl_easy_setopt(handle, option, value)
    return curl.curl_easy_perform(handle)


def serve_once_and_refuse():
    connection, _ = listener.accept()
    request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    request(connection)
    listener.close()
    connection.close()


def serve_well():
    while True:
        connection, _ = again.accept()
        try:
            request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        except OSError:
            pass
        connection.close()


handle = ctypes.c_void_p(curl.curl_easy_init())
threading.Thread(target=serve_once_and_refuse, daemon=True).start()
codes = [post(handle), post(handle)]
again = socket.create_server(("127.0.0.1", port))
threading.Thread(target=serve_well, daemon=True).start()
codes += [post(handle), post(handle), post(ctypes.c_void_p(curl.curl_easy_init()))]
for name, code in zip(("first", "connection ends", "after the reset", "the next", "a new handle"), codes):
    print("%-16s %d %s" % (name, code, curl.curl_easy_strerror(code).decode()))
sys.stdout.flush()
os._exit(codes != [0, 7, 65, 0, 0])
END
