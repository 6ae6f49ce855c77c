"""Subscribers of all manners, good and bad, on one thread of their own.

    with Subscribers() as subscribers:
        one = subscribers.add("name", "silent")
        ... subscribe one.url ...
        one.turn("well")                 # from now on
        one.received                        # numbers that it has responded to with 200

Each listens on a port of its own, so each is a host of its own to who delivers. A message is
{"n": NUMBER}; everything else that comes is kept as a notice, and gets a 200 whatever the
manner: who misbehaves has confirmed before.
"""

import asyncio
import json
import re
import threading
import time

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
FLOOD_BYTES = 1 << 30
TRICKLE_S = 60
RETRY_AFTER_S = 1
EARLY_S = 0.05  # a wait may end so much sooner: clocks are rounded


class Wire(asyncio.Protocol):
    """A connection of who delivers to one subscriber."""

    def __init__(self, subscriber):
        self.subscriber, self.read, self.left = subscriber, b"", 0
        self.transport = self.later = None
        self.flowing = True
        self.old = False  # of a server that was killed

    def connection_made(self, transport):
        self.transport = transport
        self.subscriber.wires.add(self)

    def connection_lost(self, _):
        self.subscriber.wires.discard(self)
        self.left = 0
        if self.later is not None:
            self.later.cancel()

    def data_received(self, data):
        self.read += data
        head = self.read.find(b"\r\n\r\n")
        if head < 0:
            return
        length = int(LENGTH.search(self.read[:head + 2]).group(1))
        end = head + 4 + length
        if len(self.read) < end:
            return
        line, body = self.read[:head].split(b"\r\n", 1)[0], self.read[head + 4:end]
        self.read = self.read[end:]
        self.subscriber.take(self, line.split(b" ")[1].decode(), json.loads(body))

    def respond(self, status, *headers):
        lines = ["HTTP/1.1 %d -" % status, "Content-Length: 0", *headers, "", ""]
        self.transport.write("\r\n".join(lines).encode())

    def begin(self, length):
        self.transport.write(b"HTTP/1.1 200 -\r\nContent-Length: %d\r\n\r\n" % length)

    def trickle(self):
        self.transport.write(b"x")
        self.later = self.subscriber.loop.call_later(TRICKLE_S, self.trickle)

    def flood(self):
        while self.left > 0 and self.flowing and not self.transport.is_closing():
            self.transport.write(bytes(min(self.left, 1 << 16)))
            self.left -= 1 << 16
            self.subscriber.flooded += 1 << 16

    def pause_writing(self):
        self.flowing = False

    def resume_writing(self):
        self.flowing = True
        self.flood()


class Subscriber:
    def __init__(self, loop, name, manner, context=None):
        self.loop, self.name, self.manner, self.context = loop, name, manner, context
        self.wires = set()
        self.requested = 0       # messages that it was sent
        self.received = []      # numbers of messages that it has accepted
        self.notices = []    # other documents
        self.strayed = 0     # requests for other paths than its own
        self.flooded = 0     # bytes that were sent of responses without end
        self.fails = 0       # "recovering": so often
        self.busy_every = 1  # "busy": so many messages from one 429 to the next
        self.busy_at = set()
        self.waits_since = None
        self.hurried = 0     # times that Retry-After was not waited for
        self.server = None

    async def listen(self):
        self.server = await self.loop.create_server(lambda: Wire(self), "127.0.0.1", 0,
                                                    ssl=self.context)
        scheme = "http" if self.context is None else "https"
        port = self.server.sockets[0].getsockname()[1]
        self.url = "%s://127.0.0.1:%d/hook" % (scheme, port)

    def take(self, wire, path, document):
        if path != "/hook":
            self.strayed += 1
        if document["Message_Type"] != "Notification":
            self.notices.append(document)
            wire.respond(200)
            return
        self.requested += 1
        MANNERS[self.manner](self, wire, document["body"]["n"])

    def well(self, wire, number):
        self.received.append(number)
        wire.respond(200)

    def silent(self, _wire, _number):
        pass

    def trickle(self, wire, _number):
        wire.begin(1000)
        wire.trickle()

    def redirect(self, wire, _number):
        wire.respond(302, "Location: " + self.url.replace("/hook", "/elsewhere"))

    def close(self, wire, _number):
        wire.transport.abort()

    def gone(self, wire, _number):
        wire.respond(410)

    def flood(self, wire, _number):
        wire.begin(FLOOD_BYTES)
        wire.left = FLOOD_BYTES
        wire.flood()

    def recovering(self, wire, number):
        if self.fails > 0:
            self.fails -= 1
            wire.respond(500)
        else:
            self.well(wire, number)

    def busy(self, wire, number):
        now = time.monotonic()
        if self.waits_since is not None and now - self.waits_since < RETRY_AFTER_S - EARLY_S:
            self.hurried += 1
        self.waits_since = None
        if number % self.busy_every == 0 and number not in self.busy_at:
            self.busy_at.add(number)
            self.waits_since = None if wire.old else now
            wire.respond(429, "Retry-After: %d" % RETRY_AFTER_S)
        else:
            self.well(wire, number)

    def forget_wait(self):
        """The server was killed. The next one need not know how long it has to wait. A request of the
        old one may still be on its way here."""
        for wire in list(self.wires):
            wire.old = True
        self.waits_since = None

    def turn(self, manner, pair=None):
        """Another manner, or certificate, from now on; for new connections only, so none is kept."""
        def do():
            self.manner = manner
            if pair is not None:
                self.context.load_cert_chain(*pair)
            for wire in list(self.wires):
                wire.transport.abort()
        self.loop.call_soon_threadsafe(do)


MANNERS = {"well": Subscriber.well, "silent": Subscriber.silent, "trickle": Subscriber.trickle,
           "redirect": Subscriber.redirect, "close": Subscriber.close, "gone": Subscriber.gone,
           "flood": Subscriber.flood, "recovering": Subscriber.recovering,
           "busy": Subscriber.busy}


class Subscribers:
    """All of them, and the thread that they are on."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        # Handshakes and connections that end are what this is about; their errors are noise.
        self.loop.set_exception_handler(lambda *_: None)
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.all = []

    def add(self, name, manner="well", context=None):
        one = Subscriber(self.loop, name, manner, context)
        asyncio.run_coroutine_threadsafe(one.listen(), self.loop).result()
        self.all.append(one)
        return one

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        async def end():
            for one in self.all:
                one.server.close()
                for wire in list(one.wires):
                    wire.transport.abort()
        asyncio.run_coroutine_threadsafe(end(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
