#!/usr/bin/env bash
# Provides Neo4j, PostgreSQL, Tesseract and Chromium for the tests. Does nothing if settings name servers, or if Docker or the programs are
# present.
# As root on Debian and related systems it installs missing programs. Otherwise it lists them and fails.
set -euo pipefail
cd "$(dirname "$0")"

missing=()
neo4j() { [[ -n "${NEO4J_URI:-}" ]] || docker info > /dev/null 2>&1; }
if ! neo4j; then
  # The compiler, not the run time alone: `infra/neo4j` is built here.
  command -v javac > /dev/null || missing+=(default-jdk-headless)
  command -v mvn > /dev/null || missing+=(maven)
fi
if [[ -z "${TEST_DATABASE_URL:-}" ]] && ! command -v initdb > /dev/null && ! compgen -G "/usr/lib/postgresql/*/bin/initdb" > /dev/null; then
  missing+=(postgresql)
fi
# Includes the model of English. Without it, the tests of text in pictures are skipped, or fail under CI=true.
optional=()
command -v tesseract > /dev/null || optional+=(tesseract-ocr)
# Likewise without it, the test of the evaluation report in a browser.
command -v chromium-headless-shell > /dev/null || command -v chromium > /dev/null || optional+=(chromium-headless-shell)
if [[ $(id -u) -eq 0 ]] && command -v apt-get > /dev/null; then
  if ((${#missing[@]} + ${#optional[@]})); then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" "${optional[@]}" > /dev/null
  fi
elif ((${#missing[@]})); then
  echo "Missing for the tests that need servers: ${missing[*]} (names of Debian's packages)." >&2
  echo "Install them, or point NEO4J_URI and TEST_DATABASE_URL at servers that the tests may use." >&2
  exit 1
elif ((${#optional[@]})); then
  echo "Missing for the tests of text in pictures and of reports in a browser: ${optional[*]} (names of Debian's packages)." >&2
fi
# Built here, because the first test would reach its time limit.
neo4j || mvn -q -B -f neo4j/pom.xml package
