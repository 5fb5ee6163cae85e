# asapool serve as an image. Not built or tested where it was written: there was no Docker.
#   docker build -t asapool .
#   docker run --read-only --tmpfs /tmp -p 8000:8000 -v "$PWD/runs/demo:/model:ro" asapool
FROM python:3.11-slim
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY asapool asapool
RUN pip install --no-cache-dir -c constraints.txt ".[serve,chem]" --extra-index-url https://download.pytorch.org/whl/cpu \
    && asapool warmup \
    && useradd --create-home service
USER service
EXPOSE 8000
HEALTHCHECK --start-period=120s CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health')"
CMD ["asapool", "serve", "/model", "--host", "0.0.0.0", "--port", "8000"]
