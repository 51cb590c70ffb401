#!/usr/bin/env bash
set -e
apt-get update
for python in python3.13 python3.12 python3.11; do
  if apt-get install -y $python $python-venv; then break; fi
done
$python -m venv /autograder/python
/autograder/python/bin/python -m pip install numpy
