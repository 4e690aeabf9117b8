#!/usr/bin/env python3
"""Writes tests/unit/observe/events.tfevents: the records of event_test.cpp, encoded by TensorBoard's own protocol buffers.

usage: tensorboard-events.py FILE     (needs the package tensorboard)"""
import struct
import sys

from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2, types_pb2
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2


def framed(event):
    data = event.SerializeToString(deterministic=True)
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def summary(step, *values):
    return event_pb2.Event(wall_time=1700000000.5, step=step, summary=summary_pb2.Summary(value=values))


def plugin(name, content=b""):
    data = summary_pb2.SummaryMetadata.PluginData(plugin_name=name, content=content)
    return summary_pb2.SummaryMetadata(plugin_data=data)


Value = summary_pb2.Summary.Value
version = event_pb2.Event(wall_time=1700000000.5, file_version="brain.Event:2")
restart = event_pb2.Event(
    wall_time=1700000000.5, step=41, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))
scalars = summary(41, Value(tag="loss", simple_value=0.25), Value(tag="lr", simple_value=1e-3))
shape = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)])
line = tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, tensor_shape=shape, string_val=[b"to be, or not"])
text = summary(300, Value(tag="sample/text_summary", tensor=line, metadata=plugin("text")))
histo = summary_pb2.HistogramProto(
    min=-1, max=3, num=4, sum=4.5, sum_squares=12.25, bucket_limit=[0, 1.5, 3], bucket=[1, 1, 2])
histogram = summary(41, Value(tag="weights", histo=histo))
image = summary_pb2.Summary.Image(height=2, width=3, colorspace=3, encoded_image_string=b"\x89PNG not really")
images = summary(41, Value(tag="faces/0", image=image), Value(tag="faces/1", image=image))

infos = [("batch", 3), ("fused", 2), ("lr", 3), ("name", 1)]
experiment = api_pb2.Experiment(
    name="digits",
    time_created_secs=1700000000.5,
    hparam_infos=[api_pb2.HParamInfo(name=name, type=kind) for name, kind in infos])
session = plugin_data_pb2.SessionStartInfo(group_name="digits", start_time_secs=1700000000.5)
session.hparams["batch"].number_value = 32
session.hparams["fused"].bool_value = False
session.hparams["lr"].number_value = 1e-3
session.hparams["name"].string_value = "small"


def settings(tag, data):
    return Value(tag=tag, metadata=plugin("hparams", data.SerializeToString(deterministic=True)))


Data = plugin_data_pb2.HParamsPluginData
table = summary(0, settings("_hparams_/experiment", Data(experiment=experiment)),
                settings("_hparams_/session_start_info", Data(session_start_info=session)))

with open(sys.argv[1], "wb") as out:
    for event in (version, restart, scalars, text, histogram, images, table):
        out.write(framed(event))
