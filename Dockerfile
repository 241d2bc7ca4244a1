# Regulars with the PostgreSQL that it brings. Not run by the tests; see docs/operations.md.
#
#   docker build -t regulars .
#   docker run -d --name regulars -p 127.0.0.1:8080:8080 -v regulars-data:/data regulars
#   docker exec regulars bin/regulars organization create "My shop"
FROM python:3.12.12-slim-bookworm

# PostgreSQL refuses to run as root, and an account needs a name.
RUN useradd --system --user-group --create-home --home-dir /regulars regulars \
    && install -d -o regulars -g regulars -m 0700 /data
WORKDIR /regulars
COPY --chown=regulars:regulars bin bin
COPY --chown=regulars:regulars requirements requirements
COPY --chown=regulars:regulars src src
COPY --chown=regulars:regulars docs docs
COPY --chown=regulars:regulars pyproject.toml README.md CHANGELOG.md LICENSE THIRD-PARTY.md ./
USER regulars
RUN bin/setup runtime .venv && ln -s ../.venv/bin/regulars bin/regulars

ENV REGULARS_DATA_DIR=/data \
    REGULARS_HOST=0.0.0.0 \
    REGULARS_LOG_FORMAT=json
VOLUME /data
EXPOSE 8080
# SIGTERM ends it in order: the requests in flight, the worker, then PostgreSQL.
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s --interval=10s --timeout=5s \
    CMD [".venv/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
ENTRYPOINT [".venv/bin/regulars"]
CMD ["serve"]
