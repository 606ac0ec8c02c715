// A Kafka broker in one process, for tests: `ogive-kafka PORT FOLDER`.
//
// It has the topics `reviews`, with two partitions, and `published`, with one. It prints `ready` once it listens.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	cluster, err := kfake.NewCluster(
		kfake.Ports(port),
		kfake.NumBrokers(1),
		kfake.DataDir(os.Args[2]),
		kfake.SyncWrites(),
		kfake.SeedTopics(2, "reviews"),
		kfake.SeedTopics(1, "published"),
	)
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	fmt.Println("ready")
	select {}
}
