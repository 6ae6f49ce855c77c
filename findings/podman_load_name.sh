#!/bin/bash
# podman load makes a repository out of a tag, and prefers the annotation of containerd to the one of OCI.
#
# An OCI archive names its image in index.json. The OCI image layout has org.opencontainers.image.ref.name for that,
# with a tag such as 0.2.0, as skopeo copy oci:FOLDER:0.2.0 writes it. containerd has io.containerd.image.name.
#
# Guess:     with the tag alone, the image has no name, or the tag and no repository. podman ignores the annotation of
#            containerd.
# Behavior:  with the tag alone, the image is localhost/0.2.0:latest. With both annotations, the one of containerd wins.
#
# Takes podman 4.3.1 of Debian 12 with its libraries into a temporary folder. Needs python3 and root. Exits with 1 if
# podman behaves otherwise.
set -euo pipefail
podman=4.3.1+ds1-8+deb12u1+b3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "podman=$podman" conmon crun libassuan0 libdevmapper1.02.1 libgpgme11 libseccomp2 libsubid4 \
    libyajl2 >/dev/null 2>&1 || { echo "apt-get cannot download podman $podman" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" tool; done
LD_LIBRARY_PATH=$(find "$folder/tool" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd :)
export LD_LIBRARY_PATH PATH=$folder/tool/usr/bin:$PATH
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >policy.json
cat >containers.conf <<END
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
conmon_path = ["$folder/tool/usr/bin/conmon"]
helper_binaries_dir = ["$folder/tool/usr/libexec/podman"]
END
printf '[storage]\ndriver = "vfs"\nrunroot = "%s/run"\ngraphroot = "%s/storage"\n' "$folder" "$folder" >storage.conf
export CONTAINERS_CONF=$folder/containers.conf CONTAINERS_STORAGE_CONF=$folder/storage.conf
tool/usr/bin/podman --version
cat >archive.py <<'END'
"""Writes an OCI archive with an image of one file. The arguments are the archive and annotations NAME=VALUE."""
import gzip, hashlib, io, json, sys, tarfile

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
config = {"architecture": "amd64", "os": "linux", "config": {},
          "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}
manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": blob("config.v1+json", json.dumps(config).encode()),
            "layers": [blob("layer.v1.tar+gzip", gzip.compress(layer, mtime=0))]}
image = blob("manifest.v1+json", json.dumps(manifest).encode())
image["annotations"] = dict(one.split("=", 1) for one in sys.argv[2:])
files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [image]}).encode()
with open(sys.argv[1], "wb") as archive:
    archive.write(tar(files))
END
expect() { # name of the image, annotations
    wanted=$1
    shift
    python3 archive.py image.tar "$@"
    seen=$(podman load --quiet --signature-policy policy.json -i image.tar 2>error) || { cat error >&2; exit 1; }
    echo "$*: ${seen#Loaded image: }"
    [ "$seen" = "Loaded image: $wanted" ] || exit 1
}
oci=org.opencontainers.image.ref.name
containerd=io.containerd.image.name
expect localhost/one:0.2.0 "$oci=one:0.2.0"
expect localhost/0.2.0:latest "$oci=0.2.0"
expect localhost/two:0.3.0 "$oci=one:0.2.0" "$containerd=localhost/two:0.3.0"
expect docker.io/library/one:0.2.0 "$oci=0.2.0" "$containerd=docker.io/library/one:0.2.0"
