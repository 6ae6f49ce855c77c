#!/bin/bash
# skopeo carries the Healthcheck of an OCI image into a Docker image, although it does not show it.
#
# The OCI image configuration has no Healthcheck. A program that writes images may put it there all the same, for a
# later conversion. buildah drops it from OCI images with a warning.
#
# Guess:     a conversion from OCI to Docker goes through the fields that OCI has, so it drops Healthcheck.
# Behavior:  skopeo inspect --config prints the configuration without it. skopeo copy takes the configuration as it is,
#            so that the Docker image has the health check. --config --raw shows it.
#
# Takes skopeo 1.9.3 of Debian 12 with its libraries into a temporary folder. Needs python3. Exits with 1 if skopeo
# behaves otherwise.
set -euo pipefail
skopeo=1.9.3+ds1-1+b10
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "skopeo=$skopeo" libassuan0 libdevmapper1.02.1 libgpgme11 >/dev/null 2>&1 ||
    { echo "apt-get cannot download skopeo $skopeo" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" tool; done
LD_LIBRARY_PATH=$(find "$folder/tool" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd :)
export LD_LIBRARY_PATH
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >policy.json
tool/usr/bin/skopeo --version
cat >archive.py <<'END'
"""Writes an OCI archive with an image of one file and a health check."""
import gzip, hashlib, io, json, tarfile

def tar(files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()

files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

def blob(kind, data):
    digest = hashlib.sha256(data).hexdigest()
    files["blobs/sha256/" + digest] = data
    return {"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest, "size": len(data)}

layer = tar({"file": b"text"})
config = {"architecture": "amd64", "os": "linux",
          "config": {"User": "8888", "Healthcheck": {"Test": ["CMD", "/check"], "Retries": 3}},
          "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}
manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": blob("config.v1+json", json.dumps(config).encode()),
            "layers": [blob("layer.v1.tar+gzip", gzip.compress(layer, mtime=0))]}
files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [
    blob("manifest.v1+json", json.dumps(manifest).encode())]}).encode()
with open("image.tar", "wb") as archive:
    archive.write(tar(files))
END
python3 archive.py
skopeo() {
    tool/usr/bin/skopeo --policy policy.json --override-arch amd64 "$@"
}
field() { # prints the fields of the configuration, and its health check
    python3 -c 'import json, sys
config = json.load(sys.stdin)["config"]
print(*sorted(config), config.get("Healthcheck", {}).get("Test", ""))'
}
expect() { # fields
    seen=$(field)
    echo "$seen"
    [ "$seen" = "$1" ] || exit 1
}
echo -n 'inspect --config of the OCI archive: '
skopeo inspect --config oci-archive:image.tar | expect 'User '
echo -n 'inspect --config --raw of it: '
skopeo inspect --config --raw oci-archive:image.tar | expect "Healthcheck User ['CMD', '/check']"
skopeo copy --quiet --format v2s2 oci-archive:image.tar dir:docker
grep -q '"application/vnd.docker.container.image.v1+json"' docker/manifest.json
echo -n 'the Docker image in a folder: '
config=$(python3 -c 'import json; print(json.load(open("docker/manifest.json"))["config"]["digest"].split(":")[1])')
expect "Healthcheck User ['CMD', '/check']" <"docker/$config"
skopeo copy --quiet oci-archive:image.tar docker-archive:docker.tar:one:1
echo -n 'the archive for docker load: '
config=$(tar -xOf docker.tar manifest.json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["Config"])')
tar -xOf docker.tar "$config" | expect "Healthcheck User ['CMD', '/check']"
