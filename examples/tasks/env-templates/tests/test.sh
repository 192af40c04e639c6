#!/bin/bash
if [ "$(cat greeting.txt)" = "$WANT, proctor" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
