"""An HTTP server of a test that receives POST requests, such as web hooks."""

import http.server
import ssl
import threading


class Receiver:
    """Responds as respond(path, headers, body) says, in threads: a status and headers. Status None cuts
    the connection. `pair`: a certificate and its key, for TLS. A context manager.
    """

    def __init__(self, respond, pair=None, host="127.0.0.1"):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers = respond(self.path, self.headers, body)
                if status is None:
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((host, 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a client that ends takes no response
        self.host, self.port = host, self.server.server_port
        self.url = "http%s://%s:%d" % ("s" if pair else "", self.host, self.port)
        if pair is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*pair)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
