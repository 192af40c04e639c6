#!/bin/bash
if [ "$(cat note.txt)" = up ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
