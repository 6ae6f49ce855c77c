#!/bin/bash
# Celery on Redis gives the task of a killed worker to another one up to 100 seconds after its visibility timeout.
#
# Two workers acknowledge late (task_acks_late) and have a visibility timeout of 3 seconds. SIGKILL ends the worker that
# runs a task. The other one is idle.
#
# Guess:     the other worker starts the task some seconds after the timeout.
# Behavior:  it looks for such tasks when it starts and then every 100 seconds only: a timer of 10 seconds calls a
#            function that returns at once nine times of ten. The timeout of one hour, the default, hides that.
#
# Takes python3-celery 5.2.6-5 and python3-kombu 5.2.4-1 of Debian into a temporary folder. Needs redis-server and python3
# of Debian. Takes two minutes. Exits with 1 if Celery behaves otherwise.
set -euo pipefail
celery=5.2.6-5 kombu=5.2.4-1
folder=$(mktemp -d)
redis='' first='' second=''
trap 'kill -9 $redis ${first:+-$first} ${second:+-$second} 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "python3-celery=$celery" "python3-kombu=$kombu" python3-redis=4.3.4-3 python3-vine \
    python3-billiard python3-amqp python3-tz python3-click python3-click-didyoumean python3-click-plugins \
    python3-click-repl python3-prompt-toolkit python3-wcwidth python3-six python3-async-timeout python3-deprecated \
    python3-wrapt python3-packaging >/dev/null 2>&1 ||
    { echo "apt-get cannot download python3-celery $celery" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
export PYTHONPATH=$folder:$folder/usr/lib/python3/dist-packages
redis-server --unixsocket "$folder/socket" --port 0 --save '' >redis.log &
redis=$!
disown
until [ -S socket ]; do sleep 0.1; done
cat >jobs.py <<'END'
import os, time
from celery import Celery

app = Celery("jobs", broker="redis+socket://%s/socket" % os.path.dirname(__file__))
app.conf.update(task_acks_late=True, worker_concurrency=1,
                broker_transport_options={"visibility_timeout": 3})

@app.task
def work():
    with open("runs", "a") as f:
        f.write("%d\n" % time.monotonic())
    time.sleep(600)
END
worker() {
    setsid /usr/bin/python3 -W ignore -m celery -A jobs worker -n "$1" --loglevel=info >"$1.log" 2>&1 &
    disown
    until grep -q ' ready\.$' "$1.log"; do sleep 0.1; done
}
worker first
first=$!
/usr/bin/python3 -W ignore -c 'import jobs; jobs.work.delay()'
until [ -s runs ]; do sleep 0.1; done
worker second
second=$!
kill -9 -- "-$first"
first=''
for _ in {1..1500}; do
    [ "$(wc -l <runs)" -lt 2 ] || break
    sleep 0.1
done
{ read -r one && read -r two; } <runs
echo "Celery $celery, kombu $kombu: the second worker starts the task $((two - one)) seconds after the first"
[ $((two - one)) -ge 60 ]
