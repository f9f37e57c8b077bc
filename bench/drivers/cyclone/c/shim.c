/* What Rust cannot comfortably reach: the type that idlc made, the QoS objects and the listener.
   Each function returns what Cyclone DDS returned: an entity, or a negative error code. */
#include "dds/dds.h"
#include "octets.h"

typedef std_msgs_msg_dds__UInt8MultiArray_ message_t;
#define MESSAGE_DESC std_msgs_msg_dds__UInt8MultiArray__desc

/* A take gives at most so many messages; with synchronous delivery it is nearly always one. */
#define TAKEN 8

/* Gets each message, on Cyclone's receive thread. */
typedef void (*sink_t)(void *context, const uint8_t *data, size_t len);

typedef struct {
  sink_t sink;
  void *context;
  /* The messages that dds_take fills. Their buffers grow to the longest message and are used
     again, as a program that keeps its message object does; a loan would be freed each time. */
  message_t messages[TAKEN];
} reader_t;

/* How long a writer waits for room: longer than any workload's wait, so that an error is one. */
#define PATIENCE DDS_SECS(30)

static dds_qos_t *qos_new(void) {
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, PATIENCE);
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  return qos;
}

dds_entity_t shim_topic(dds_entity_t participant, const char *name) {
  return dds_create_topic(participant, &MESSAGE_DESC, name, NULL, NULL);
}

dds_entity_t shim_writer(dds_entity_t participant, dds_entity_t topic) {
  dds_qos_t *qos = qos_new();
  dds_entity_t writer = dds_create_writer(participant, topic, qos, NULL);
  dds_delete_qos(qos);
  return writer;
}

dds_return_t shim_write(dds_entity_t writer, const uint8_t *data, uint32_t len) {
  message_t message = {0};
  message.data_._buffer = (uint8_t *)data; /* dds_write only reads it */
  message.data_._length = len;
  message.data_._maximum = len;
  return dds_write(writer, &message);
}

static void on_data_available(dds_entity_t reader, void *arg) {
  reader_t *r = arg;
  void *samples[TAKEN];
  dds_sample_info_t infos[TAKEN];
  for (int i = 0; i < TAKEN; i++) samples[i] = &r->messages[i];
  int taken;
  do {
    taken = dds_take(reader, samples, infos, TAKEN, TAKEN);
    for (int i = 0; i < taken; i++)
      if (infos[i].valid_data)
        r->sink(r->context, r->messages[i].data_._buffer, r->messages[i].data_._length);
  } while (taken == TAKEN);
}

/* Subscribes. `kept` is to be given to shim_reader_free. */
dds_entity_t shim_reader(dds_entity_t participant, dds_entity_t topic, sink_t sink, void *context,
                         reader_t **kept) {
  reader_t *r = dds_alloc(sizeof *r); /* zeroed */
  r->sink = sink;
  r->context = context;
  dds_qos_t *qos = qos_new();
  dds_listener_t *listener = dds_create_listener(r);
  dds_lset_data_available(listener, on_data_available);
  dds_entity_t reader = dds_create_reader(participant, topic, qos, listener);
  dds_delete_listener(listener);
  dds_delete_qos(qos);
  *kept = r;
  return reader;
}

/* Frees what shim_reader kept, after dds_delete of the reader: that waits for a running listener. */
void shim_reader_free(reader_t *r) {
  for (int i = 0; i < TAKEN; i++)
    dds_sample_free(&r->messages[i], &MESSAGE_DESC, DDS_FREE_CONTENTS);
  dds_free(r);
}
