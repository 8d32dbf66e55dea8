#!/usr/bin/env python3
"""Trains the mlp of `ulpian train` in PyTorch from the same start and in the same order, to compare accuracies.

    torch_mnist_peer.py --data DIR --weights initial.safetensors --order order.u32 --batch 64 --lr 0.1

--data     a folder of IDX or IDX.gz files with MNIST's names; left out: the digits in crates/ulpian/assets, split as
           ulpian splits them (first 1,437 train, last 360 test)
--weights  fc1.weight [hidden, pixels], fc1.bias [hidden], fc2.weight [classes, hidden], fc2.bias [classes], f32
--order    raw little-endian u32: for every epoch the indices of the training images in the order they are seen
--batch    images a step; the last batch of an epoch may be smaller (--drop-last leaves it out)
--save     where to put the trained weights, under the same names

Prints a JSON object per epoch: {"epoch", "loss", "accuracy"}, and at the end {"accuracy"}: the share of test images
whose largest logit is the label's. Plain SGD, mean cross entropy, pixels divided by 255 (digits: 16), all f32.
"""

import argparse
import gzip
import json
import pathlib
import struct
import sys

import numpy
import torch
from safetensors.torch import load_file, save_file

DIGITS_TRAIN = 1437


def read_idx(path):
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    if raw[:3] != b"\0\0\x08":
        raise SystemExit(f"{path}: not an IDX file of unsigned bytes")
    rank = raw[3]
    shape = struct.unpack(f">{rank}I", raw[4 : 4 + 4 * rank])
    body = numpy.frombuffer(raw, numpy.uint8, offset=4 + 4 * rank)
    if body.size != numpy.prod(shape):
        raise SystemExit(f"{path}: {body.size} bytes for shape {shape}")
    return body.reshape(shape)


def load(directory):
    """(train images, train labels, test images, test labels), images scaled to 0..1 and flat."""
    if directory is None:
        assets = pathlib.Path(__file__).resolve().parent.parent / "crates/ulpian/assets"
        images = read_idx(assets / "digits-images-idx3-ubyte.gz")
        labels = read_idx(assets / "digits-labels-idx1-ubyte.gz")
        parts = images[:DIGITS_TRAIN], labels[:DIGITS_TRAIN], images[DIGITS_TRAIN:], labels[DIGITS_TRAIN:]
        scale = 16.0
    else:

        def find(name):
            plain = directory / name
            return read_idx(plain if plain.exists() else directory / f"{name}.gz")

        parts = tuple(
            find(f"{kind}-{what}-ubyte") for kind in ("train", "t10k") for what in ("images-idx3", "labels-idx1")
        )
        scale = 255.0

    def flat(images):
        return torch.from_numpy(images.reshape(len(images), -1).astype(numpy.float32)) / scale

    train_images, train_labels, test_images, test_labels = parts
    return (
        flat(train_images),
        torch.from_numpy(train_labels.astype(numpy.int64)),
        flat(test_images),
        torch.from_numpy(test_labels.astype(numpy.int64)),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--weights", type=pathlib.Path, required=True)
    parser.add_argument("--order", type=pathlib.Path, required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--drop-last", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save", type=pathlib.Path)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    train_images, train_labels, test_images, test_labels = load(args.data)
    order = numpy.fromfile(args.order, dtype="<u4").astype(numpy.int64)
    count = len(train_labels)
    if order.size == 0 or order.size % count:
        raise SystemExit(f"{args.order}: {order.size} indices are not whole epochs of {count} images")
    epochs = torch.from_numpy(order.reshape(-1, count))
    for number, epoch in enumerate(epochs):
        if not torch.equal(epoch.sort().values, torch.arange(count)):
            raise SystemExit(f"{args.order}: epoch {number} is not a permutation of the {count} images")

    weights = load_file(args.weights)
    hidden, pixels = weights["fc1.weight"].shape
    classes = weights["fc2.weight"].shape[0]
    model = torch.nn.Sequential()
    model.add_module("fc1", torch.nn.Linear(pixels, hidden))
    model.add_module("act", torch.nn.ReLU())
    model.add_module("fc2", torch.nn.Linear(hidden, classes))
    model.load_state_dict(weights, strict=True)
    optimiser = torch.optim.SGD(model.parameters(), lr=args.lr)

    def accuracy():
        with torch.no_grad():
            return (model(test_images).argmax(1) == test_labels).double().mean().item()

    last = accuracy()
    print(json.dumps({"epoch": 0, "loss": None, "accuracy": last}), flush=True)
    for number, epoch in enumerate(epochs, 1):
        total, seen = 0.0, 0
        for indices in epoch.split(args.batch):
            if args.drop_last and len(indices) < args.batch:
                continue
            optimiser.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(train_images[indices]), train_labels[indices])
            loss.backward()
            optimiser.step()
            total += loss.item() * len(indices)
            seen += len(indices)
        last = accuracy()
        print(json.dumps({"epoch": number, "loss": total / max(seen, 1), "accuracy": last}), flush=True)
    if args.save:
        save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, args.save)
    print(json.dumps({"accuracy": last}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
