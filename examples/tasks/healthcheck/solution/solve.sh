#!/bin/bash
cp /tmp/healthy note.txt
