#!/bin/sh
# The locked dependencies, in /venv; as layers in /layers/torch and /layers/rest, where files are
# the same, byte for byte and second for second, whenever this is run. Run by the Dockerfile.
#
# All of it in one go: a later layer that only changed files' times would hold them all again.
set -eu

site=/venv/lib/python3.11/site-packages

# pip stays outside: what runs in production has no installer in its environment.
python3 -m venv --without-pip /venv

if [ -s /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi
if [ -s /run/secrets/pip ]; then export PIP_CONFIG_FILE=/run/secrets/pip; fi
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_FIND_LINKS=/wheels
# A folder of wheels that has all of them says so, and no index is asked.
if [ -e /wheels/complete ]; then export PIP_NO_INDEX=1; fi

# Quiet, because pip names the index that it asks, with the user in its address.
install() {
    python3 -m pip --python /venv/bin/python install --quiet --progress-bar off --no-compile \
        --use-pep517 --constraint constraints.txt "$@"
}

/venv/bin/python -c '
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print(*project["dependencies"], *project["optional-dependencies"]["examples"], sep="\n")
' > all.txt
torch=$(grep '^torch==' all.txt)
case "$TORCH" in
cpu)
    install ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$torch+cpu" || {
        echo 'no CPU wheel in reach: taking the standard one, with CUDA (see TORCH_INDEX, WHEELS)'
        install "$torch"
    }
    ;;
cuda) install "$torch" ;;
*)
    echo "TORCH must be cpu or cuda, not '$TORCH'"
    exit 2
    ;;
esac
install --requirement all.txt

# What nobody runs here: headers and static libraries (there is no compiler), torch's test programs,
# packages' own tests. MLflow's pages stay: its server runs in this image too (infra/kubernetes).
cd "$site"
rm -rf torch/include torch/test pyarrow/include pyarrow/*.pyx pyarrow/*.pxd
find torch/bin -type f ! -name torch_shm_manager -delete
find . -name '*.a' -delete
find . -type d -name tests -prune -exec rm -rf {} +
find mlflow/server/js/build -name '*.map' -delete

# Bytecode that is known by its source's content, since files' times say nothing. A few templates
# and files for other versions are no Python of this one.
find . -name __pycache__ -prune -exec rm -rf {} +
PYTHONHASHSEED=0 python3 -B -S -E -m compileall -q -f -j 0 --invalidation-mode checked-hash . \
    > /dev/null || true

# torch apart: it is the largest part, and changes least.
mkdir -p "/layers/torch$site" /layers/rest
cp -al /venv /layers/rest/
for name in torch torch-*.dist-info torchgen functorch; do
    [ ! -e "/layers/rest$site/$name" ] || mv "/layers/rest$site/$name" "/layers/torch$site/"
done
find /layers -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
