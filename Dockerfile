# DEVICE=cpu or DEVICE=cuda. The CUDA wheels bring their own libraries, so both start from the same image; the
# driver is the host's and comes in through the NVIDIA container toolkit.
ARG DEVICE=cpu

FROM python:3.11.14-slim-bookworm AS base
# a compiler for torch.compile; make is the entry point
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++=4:12.2.0-3 make=4.3-4.1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 dissent \
    && ln -s /dissent/.venv/bin/ray /usr/local/bin/ray \
    && install --directory --owner=dissent --group=dissent /dissent /findings

FROM base AS cpu
ENV GPU=0

FROM base AS cuda
ENV GPU=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility

# hadolint ignore=DL3006
FROM ${DEVICE}
USER 1000:1000
WORKDIR /dissent
# where pip and uv may look for smaller wheels than PyPI has, e.g. of the CPU build of torch
ARG PIP_EXTRA_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 \
    UV_NO_CACHE=1
COPY --chown=dissent:dissent Makefile requirements.txt ./
COPY --chown=dissent:dissent harness/execute/requirements harness/execute/requirements
COPY --chown=dissent:dissent harness/execute/install.py harness/execute/
RUN make setup
COPY --chown=dissent:dissent . .
ENV FINDINGS=/findings
VOLUME ["/findings"]
ENTRYPOINT ["make"]
CMD ["hunt"]
