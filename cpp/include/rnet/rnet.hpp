// robot-net for C++: nodes, topics, and plain messages.
//
//     rnet::Node node("camera");
//     auto images = node.publisher("/image");
//     images.send("...");
//
// For messages of protoc include rnet/protobuf.hpp, which needs libprotobuf.
#pragma once

#include <rnet/error.hpp>
#include <rnet/message.hpp>
#include <rnet/node.hpp>
#include <rnet/plain.hpp>
#include <rnet/publisher.hpp>
#include <rnet/sample.hpp>
#include <rnet/span.hpp>
#include <rnet/subscriber.hpp>
