# One image for every step of the pipeline, and for the command line.
#
#   docker build -t evertrain:0.1.0 .                              CPU
#   docker build -t evertrain:0.1.0 --build-arg TORCH=cuda .       NVIDIA GPUs
#
# It runs as uid 10001 with a read-only root file system; /tmp is the one place it writes to:
#
#   docker run --rm --read-only --tmpfs /tmp --cap-drop=ALL evertrain:0.1.0 evertrain doctor
#
# To add packages: FROM evertrain:0.1.0, USER 0, RUN pip --python /venv/bin/python install …, USER 10001.
#
# Behind a proxy or a mirror (nothing of these stays in the image):
#   --secret id=ca,src=ca.pem            certificates that pip trusts
#   --secret id=pip,src=pip.conf         pip's configuration, credentials included
#   --build-arg TORCH_INDEX=URL          a package index that has torch's CPU wheels
#   --build-arg WHEELS=IMAGE             an image whose root is a folder of wheels; with buildx,
#   --build-context wheels=FOLDER        the folder itself

ARG BASE_IMAGE=python:3.11-slim
ARG WHEELS=scratch

FROM ${WHEELS} AS wheels

# ---------------------------------------------------------------- dependencies
# Knows pyproject.toml and the lock alone, so a change of code leaves this layer as it is.
FROM ${BASE_IMAGE} AS dependencies
ARG TORCH=cpu
ARG TORCH_INDEX=
WORKDIR /build
# pip stays outside: what runs in production has no installer in its environment.
RUN python3 -m venv --without-pip /venv
COPY pyproject.toml constraints.txt ./
RUN --mount=type=secret,id=ca \
    --mount=type=secret,id=pip \
    --mount=type=bind,from=wheels,target=/wheels \
    --mount=type=cache,target=/root/.cache/pip \
    set -eu; \
    if [ -s /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi; \
    if [ -s /run/secrets/pip ]; then export PIP_CONFIG_FILE=/run/secrets/pip; fi; \
    export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_FIND_LINKS=/wheels; \
    install() { python3 -m pip --python /venv/bin/python install --progress-bar off \
        --constraint constraints.txt "$@"; }; \
    /venv/bin/python -c 'import tomllib; \
p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
print(*p["dependencies"], *p["optional-dependencies"]["examples"], sep="\n")' > all.txt; \
    torch=$(grep '^torch==' all.txt); \
    case "$TORCH" in \
    cpu) install ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$torch+cpu" || { \
        echo 'no CPU wheel in reach: taking the standard one, with CUDA (see TORCH_INDEX, WHEELS)'; \
        install "$torch"; };; \
    cuda) install "$torch";; \
    *) echo "TORCH must be cpu or cuda, not '$TORCH'"; exit 2;; \
    esac; \
    install --requirement all.txt
# What nobody runs here: headers (there is no compiler), torch's test programs, packages' own tests.
RUN cd /venv/lib/python3.11/site-packages \
    && rm -rf torch/include torch/test torch/bin/*[Tt]est* torch/bin/protoc* pyarrow/include \
    && find . -type d -name tests -prune -exec rm -rf {} +

# ---------------------------------------------------------------- code
FROM dependencies AS code
COPY README.md LICENSE ./
COPY components components
COPY pipelines pipelines
COPY training_core training_core
COPY infra infra
# setuptools is there because torch needs it; --root keeps the code apart from the dependencies.
RUN python3 -m pip --python /venv/bin/python install --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation --no-index --no-warn-script-location --root /code .

# ---------------------------------------------------------------- the image
FROM ${BASE_IMAGE}
ARG TORCH=cpu
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="evertrain" \
      org.opencontainers.image.description="Continuous training for PyTorch: every step of the pipeline" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      evertrain.torch="${TORCH}"

# A name for the uid: getpass.getuser(), which torch calls, fails without one.
RUN groupadd --gid 10001 evertrain \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin evertrain

# All that is written goes below /tmp, which is a mount. Bytecode was compiled when this was built.
ENV PATH=/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    USER=evertrain \
    TMPDIR=/tmp \
    XDG_CACHE_HOME=/tmp/.cache \
    XDG_CONFIG_HOME=/tmp/.config \
    MPLCONFIGDIR=/tmp/.cache/matplotlib \
    TORCHINDUCTOR_CACHE_DIR=/tmp/.cache/torchinductor \
    EVERTRAIN_HOME=/tmp/evertrain \
    GIT_PYTHON_REFRESH=quiet

COPY --from=dependencies /venv /venv
COPY --from=code /code/ /
WORKDIR /app
COPY examples examples

USER 10001:10001
CMD ["evertrain", "--help"]
