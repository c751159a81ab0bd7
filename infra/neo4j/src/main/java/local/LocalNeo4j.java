package local;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;
import org.neo4j.io.ByteUnit;

/**
 * Neo4j Community in one process, on loopback: {@code LocalNeo4j FOLDER PORT}.
 *
 * <p>Prints "ready" when Bolt responds. Ends when its standard input ends, so that it does not outlive its parent process. It
 * requires no password, because it listens on loopback only.
 */
public final class LocalNeo4j {
    private LocalNeo4j() {}

    public static void main(String[] arguments) throws Exception {
        var folder = Path.of(arguments[0]);
        var port = Integer.parseInt(arguments[1]);
        Files.createDirectories(folder);
        var service = new DatabaseManagementServiceBuilder(folder)
                .setConfig(BoltConnector.enabled, true)
                .setConfig(BoltConnector.listen_address, new SocketAddress("127.0.0.1", port))
                .setConfig(BoltConnector.advertised_address, new SocketAddress("127.0.0.1", port))
                .setConfig(GraphDatabaseSettings.auth_enabled, false)
                .setConfig(GraphDatabaseSettings.pagecache_memory, ByteUnit.mebiBytes(128))
                // Otherwise each database has 256 MiB of empty log.
                .setConfig(GraphDatabaseSettings.preallocate_logical_logs, false)
                .setConfig(GraphDatabaseSettings.transaction_timeout, Duration.ofMinutes(10))
                // Tests empty the database again and again. Neo4j would plan each statement again for the changed statistics.
                .setConfig(GraphDatabaseSettings.query_statistics_divergence_threshold, 1.0)
                .setConfig(GraphDatabaseSettings.cypher_min_replan_interval, Duration.ofHours(1))
                .build();
        Runtime.getRuntime().addShutdownHook(new Thread(service::shutdown));
        System.out.println("ready");
        while (System.in.read() >= 0) {
            // The parent process writes nothing; its end closes the stream.
        }
        System.exit(0);
    }
}
