#!/bin/bash
echo 0 > /logs/verifier/reward.txt
grep -qx 42 answer.txt && echo 1 > /logs/verifier/reward.txt
exit 0
