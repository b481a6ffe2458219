# One image for every step of the pipeline, and for the command line.
#
#   docker build -t evertrain:0.1.0 .                              CPU
#   docker build -t evertrain:0.1.0 --build-arg TORCH=cuda .       NVIDIA GPUs
#
# or `make image`, which also finds what a machine without a registry lacks: see docs/images.md.
# It runs as uid 10001 with a read-only root file system; /tmp is the one place it writes to:
#
#   docker run --rm --read-only --tmpfs /tmp --cap-drop=ALL evertrain:0.1.0 evertrain doctor
#
# Behind a proxy or a mirror (nothing of these stays in the image):
#   --secret id=ca,src=ca.pem            certificates that pip trusts
#   --secret id=pip,src=pip.conf         pip's configuration, credentials included
#   --build-arg TORCH_INDEX=URL          a package index that has torch's CPU wheels
#   --build-arg WHEELS=IMAGE             an image whose root is a folder of wheels; with buildx,
#   --build-context wheels=FOLDER        the folder itself. A file `complete` there: all are there

ARG BASE_IMAGE=python:3.11-slim
ARG WHEELS=scratch

FROM ${WHEELS} AS wheels

# ---------------------------------------------------------------- the base system
FROM ${BASE_IMAGE} AS root
# The time of all files, whatever the commit: what did not change keeps its layer's digest.
ARG SOURCE_DATE_EPOCH=946684800
RUN --mount=type=bind,source=infra/image/root.sh,target=/root.sh sh /root.sh

# ---------------------------------------------------------------- dependencies
# Knows pyproject.toml and the lock alone, so a change of code leaves these layers as they are.
FROM ${BASE_IMAGE} AS dependencies
ARG TORCH=cpu
ARG TORCH_INDEX=
ARG SOURCE_DATE_EPOCH=946684800
WORKDIR /build
COPY pyproject.toml constraints.txt ./
RUN --mount=type=secret,id=ca \
    --mount=type=secret,id=pip \
    --mount=type=bind,from=wheels,target=/wheels \
    --mount=type=bind,source=infra/image/packages.sh,target=/packages.sh \
    --mount=type=cache,target=/root/.cache/pip \
    sh /packages.sh

# ---------------------------------------------------------------- code
FROM dependencies AS code
ARG SOURCE_DATE_EPOCH=946684800
COPY README.md LICENSE ./
COPY components components
COPY pipelines pipelines
COPY training_core training_core
COPY infra infra
COPY examples /code/app/examples
# setuptools is there because torch needs it; --root keeps the code apart from the dependencies.
RUN --mount=type=bind,from=root,source=/image,target=/base set -eu; \
    python3 -m pip --python /venv/bin/python install --quiet --disable-pip-version-check \
        --no-compile --no-deps --no-build-isolation --no-index --no-warn-script-location \
        --root /code . ; \
    /venv/bin/python infra/image/sbom.py --code /code --base /base \
        --output /code/usr/share/evertrain/sbom.cdx.json; \
    PYTHONHASHSEED=0 python3 -B -S -E -m compileall -q -f -s /code -p / \
        --invalidation-mode checked-hash /code; \
    chmod -R go=u-w /code; \
    find /code -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

# ---------------------------------------------------------------- the image
# From nothing: a layer that took pip from the base image would only hide it.
FROM scratch
ARG TORCH=cpu
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="evertrain" \
      org.opencontainers.image.description="Continuous training for PyTorch: every step of the pipeline" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      evertrain.torch="${TORCH}"

# All that is written goes below /tmp, which is a mount. Bytecode was compiled when this was built.
ENV PATH=/venv/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
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
    EVERTRAIN_COMMIT=${REVISION} \
    GIT_PYTHON_REFRESH=quiet

COPY --from=root /image/ /
COPY --from=dependencies /layers/torch/ /
COPY --from=dependencies /layers/rest/ /
COPY --from=code /code/ /

WORKDIR /app
USER 10001:10001
CMD ["evertrain", "--help"]
